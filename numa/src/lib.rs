//! NUMA topology of the host, read from sysfs.
