//! The host's half of Linux: syscall dispatch, memory, files, process, time.
