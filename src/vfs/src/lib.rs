//! The guest's file tree: image, writable layer, volumes, /proc, /dev, /sys.
