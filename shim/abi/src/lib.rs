//! What the shim and the host share: addresses, ports, layouts.
