//! The KVM virtual machine of one agent.
//!
//! Rooms, bottom up:
//! - [`platform`]: what differs between software KVM (PVM) and VMX/SVM hardware, and nothing else
//! - [`memory`]: guest-physical memory, its memslots and the allocator of its pages
//! - [`page_table`]: the guest's page tables
//! - [`address_space`]: maps, protects and unmaps guest-virtual pages
//! - [`ring0`]: descriptor tables and exception stubs, the only privileged code of a guest
//! - [`vdso`]: the vDSO and the page by which it tells the time
//! - `tsc`: the guest's time stamp counter
//! - [`immediate_exit`]: stops a processor from outside
//! - [`vcpu`]: runs the guest and decodes why it stopped
//! - [`vm`]: puts the rooms together
//!
//! Invariants: program and shim run in ring 3 and nothing else of the guest's does; page tables
//! and the ring-0 area are mapped supervisor-only, so a guest changes neither; guest memory is
//! read and written only through `vm_memory`'s volatile accessors, never through references.

pub mod address_space;
pub mod immediate_exit;
pub mod memory;
pub mod page_table;
pub mod platform;
pub mod ring0;
mod tsc;
pub mod vcpu;
pub mod vdso;
pub mod vm;

pub use address_space::AddressSpace;
pub use immediate_exit::ImmediateExit;
pub use memory::{GuestMemory, OutOfMemory, PhysicalRun};
pub use page_table::Protection;
pub use platform::Platform;
pub use vcpu::{Exit, Syscall, Vcpu};
pub use vdso::TimePagePlace;
pub use vm::{Vm, VmError};
