//! Arbitrary code with arbitrary registers on the real processor: whatever it does, the guest ends
//! in a way that is the program's, and the host goes on.

use std::os::unix::thread::RawPthread;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use agentrt_linux::guest::Interrupt;
use agentrt_linux::mm::STACK_TOP;
use agentrt_linux::{End, Guest};
use agentrt_shim_abi::{ENTRY_LSTAR, ENTRY_PATCHED, RING0_BASE, SHIM_BASE, USER_END};
use proptest::prelude::*;
use proptest::sample::select;

use crate::budget::{alone, fuzz as fuzz_for, watched};
use crate::elf;
use crate::world::{Holding, World, has_kvm};

/// How long a program runs before it is interrupted.
const RUN: Duration = Duration::from_millis(5);

/// Instructions that do something out of the ordinary in ring 3.
const UNUSUAL: [&[u8]; 48] = [
    b"\xcc",                     // int3
    b"\xcd\x80",                 // int $0x80
    b"\xcd\x20",                 // int $0x20
    b"\xcd\x0e",                 // int $14
    b"\xf1",                     // icebp
    b"\x0f\x05",                 // syscall
    b"\x0f\x34",                 // sysenter
    b"\x0f\x35",                 // sysexit
    b"\x48\x0f\x07",             // sysretq
    b"\x48\xcf",                 // iretq
    b"\x48\xcb",                 // lretq
    b"\x9c",                     // pushf
    b"\x9d",                     // popf
    b"\x68\x02\x03\x00\x00\x9d", // push $0x302; popf: trap flag
    b"\x68\x02\x02\x04\x00\x9d", // push $0x40202; popf: alignment check
    b"\x68\x02\x42\x00\x00\x9d", // push $0x4202; popf: nested task
    b"\x68\x00\x00\x00\x00\x9d", // push $0; popf: interrupts off
    b"\xfd",                     // std
    b"\xfa",                     // cli
    b"\xfb",                     // sti
    b"\xf4",                     // hlt
    b"\xe6\x20",                 // out %al, $0x20
    b"\xe6\x0e",                 // out %al, $14
    b"\xe4\x20",                 // in $0x20, %al
    b"\xee",                     // out %al, %dx
    b"\x6e",                     // outsb
    b"\x8e\xd0",                 // mov %eax, %ss
    b"\x8e\xd8",                 // mov %eax, %ds
    b"\x8e\xe0",                 // mov %eax, %fs
    b"\x8e\xe8",                 // mov %eax, %gs
    b"\x0f\xa2",                 // cpuid
    b"\x0f\x31",                 // rdtsc
    b"\x0f\x32",                 // rdmsr
    b"\x0f\x20\xd8",             // mov %cr3, %rax
    b"\x0f\x01\xf8",             // swapgs
    b"\x0f\x01\xc1",             // vmcall
    b"\x0f\x01\xd9",             // vmmcall
    b"\x0f\x01\xd0",             // xgetbv
    b"\x0f\x01\xd1",             // xsetbv
    b"\x0f\x01\x38",             // invlpg (%rax)
    b"\xf3\x48\x0f\xae\xd0",     // wrfsbase %rax
    b"\xf3\x48\x0f\xae\xd8",     // wrgsbase %rax
    b"\x0f\xae\x28",             // xrstor (%rax)
    b"\x0f\xae\x20",             // xsave (%rax)
    b"\xf3\x48\xa5",             // rep movsq
    b"\xff\xe0",                 // jmp *%rax
    b"\xff\xe1",                 // jmp *%rcx
    b"\xeb\xfe",                 // jmp .
];

#[derive(Clone)]
struct Program {
    /// rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15, as instructions number them.
    registers: [u64; 16],
    code: Vec<u8>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "registers {:#x?}, code {:02x?}",
            self.registers, self.code
        )
    }
}

impl Program {
    /// Loads the registers, then runs the code; behind it is an instruction that is none.
    fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (register, value) in (0u8..).zip(self.registers) {
            // movabs $value, %register
            text.extend([0x48 | register >> 3, 0xb8 | register & 7]);
            text.extend(value.to_le_bytes());
        }
        text.extend(&self.code);
        text.extend(b"\x0f\x0b");
        text
    }
}

fn program() -> impl Strategy<Value = Program> {
    let piece = prop_oneof![
        4 => select(&UNUSUAL[..]).prop_map(<[u8]>::to_vec),
        2 => prop::collection::vec(any::<u8>(), 1..16),
        // movabs $value, %rax
        1 => value().prop_map(|value| [b"\x48\xb8".as_slice(), &value.to_le_bytes()].concat()),
        // mov $number, %eax; syscall
        1 => (0..350_u32)
            .prop_map(|number| [b"\xb8".as_slice(), &number.to_le_bytes(), b"\x0f\x05"].concat()),
    ];
    (
        prop::array::uniform16(value()),
        prop::collection::vec(piece, 1..12),
    )
        .prop_map(|(mut registers, pieces)| {
            // Most programs want a stack.
            if registers[4] % 4 != 0 {
                registers[4] = STACK_TOP - 4096 + registers[4] % 64 * 8;
            }
            Program {
                registers,
                code: pieces.concat(),
            }
        })
}

fn value() -> impl Strategy<Value = u64> {
    let near = select(
        &[
            elf::BASE,
            elf::DATA,
            STACK_TOP,
            SHIM_BASE,
            USER_END,
            RING0_BASE,
            RING0_BASE + 3 * 4096,
            ENTRY_LSTAR,
            ENTRY_PATCHED,
            1 << 47,
            u64::MAX << 47,
            0,
        ][..],
    );
    prop_oneof![
        2 => (near, -64..64_i64).prop_map(|(place, distance)| place.wrapping_add_signed(distance)),
        // Selectors of the tables that Linux and a guest have.
        1 => select(&[0, 0x10, 0x18, 0x23, 0x2b, 0x33, 0x3b, 0x40, 0x43, 0x7b_u64][..]),
        1 => 0..512_u64,
        1 => any::<u64>(),
    ]
}

/// Runs a guest, which is interrupted after [`RUN`] unless it has ended.
pub fn run_for_a_moment(guest: &mut Guest) -> End {
    let interrupt = guest.interrupt();
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        let thread = current_thread();
        scope.spawn(move || {
            let mut wait = RUN;
            // Again and again: a signal may come between a look at the flag and KVM_RUN.
            while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                interrupt_thread(&interrupt, thread);
                wait = Duration::from_millis(1);
            }
        });
        let end = guest.run();
        drop(ended);
        end
    })
}

fn current_thread() -> RawPthread {
    // SAFETY: pthread_self has no preconditions.
    unsafe { libc::pthread_self() }
}

fn interrupt_thread(interrupt: &Interrupt, thread: RawPthread) {
    interrupt.expire();
    // SAFETY: the thread waits for this one to end (it owns the scope), so it is still there; the
    // signal's handler does nothing.
    unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
}

/// Makes SIGUSR1 interrupt system calls and do nothing else.
pub fn catch_signal() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: all zeros is a valid sigaction: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
    // SAFETY: the handler does nothing, which is async-signal-safe.
    unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
}

#[test]
fn fuzz() {
    if !has_kvm() {
        return;
    }
    let _alone = alone();
    catch_signal();
    let world = World::new();
    drop(world.guest("/program"));
    let before = Holding::now();
    fuzz_for(&program(), |program| {
        world.add_program("arbitrary", &elf::program(&program.text()));
        let mut guest = world.guest("/arbitrary").unwrap();
        let end = watched(|| format!("{program:?}"), || run_for_a_moment(&mut guest));
        assert!(matches!(end, End::Program(_) | End::TimedOut), "{end:?}");
        drop(guest);
        before.check_return();
    });
}
