//! Real guests: a few instructions each.

use super::*;
use crate::vcpu::{Exception, Route};

const CODE: u64 = 0x40_0000;
const STACK: u64 = 0x80_0000;

/// Hosts without KVM run these tests as integration tests report it: skipped, and said so.
fn guest(code: &[u8]) -> Option<Vm> {
    if !std::path::Path::new("/dev/kvm").exists() {
        eprintln!("skipped: no /dev/kvm");
        return None;
    }
    let mut vm = Vm::new(64 << 20).unwrap();
    let run = vm
        .space
        .map_new(CODE, 1, Protection::READ_EXECUTE, Owner::Program)
        .unwrap();
    vm.space
        .memory()
        .slice(run.start, code.len())
        .unwrap()
        .copy_from(code);
    vm.space
        .map_new(STACK - PAGE_SIZE, 1, Protection::READ_WRITE, Owner::Program)
        .unwrap();
    vm.start(CODE, STACK);
    Some(vm)
}

fn exception(exit: Exit) -> Exception {
    match exit {
        Exit::Exception(exception) => exception,
        other => panic!("expected an exception, got {other:?}"),
    }
}

#[test]
fn a_syscall_instruction_reaches_the_host_and_its_answer_the_program() {
    // mov $39,%eax; syscall; mov %rax,%rdi; mov $60,%eax; syscall
    let code = b"\xb8\x27\0\0\0\x0f\x05\x48\x89\xc7\xb8\x3c\0\0\0\x0f\x05";
    let Some(mut vm) = guest(code) else { return };
    let Exit::Syscall(call) = vm.run() else {
        panic!("no syscall")
    };
    assert_eq!((call.number, call.return_address), (39, CODE + 7));
    assert_eq!(call.route, Route::Trapped);
    vm.vcpu.answer(1234);
    let Exit::Syscall(call) = vm.run() else {
        panic!("no syscall")
    };
    assert_eq!((call.number, call.arguments[0]), (60, 1234));
}

#[test]
fn a_trampoline_enters_by_its_own_door() {
    // lea 9f(%rip),%rcx; movabs $ENTRY_PATCHED,%rax → push is forbidden, so: jmp *(%rip)
    let mut code = b"\x48\x8d\x0d\x06\0\0\0\xff\x25\x02\0\0\0\x0f\x0b".to_vec();
    code.extend(agentrt_shim_abi::ENTRY_PATCHED.to_le_bytes());
    let Some(mut vm) = guest(&code) else { return };
    let Exit::Syscall(call) = vm.run() else {
        panic!("no syscall")
    };
    assert_eq!(
        (call.route, call.return_address),
        (Route::Patched, CODE + 13)
    );
    vm.vcpu.answer(0);
    assert_eq!(exception(vm.run()).vector, 6);
}

#[test]
fn page_faults_tell_address_and_kind_and_can_be_resolved() {
    // movb $7,0x500000; mov 0x500000,%al; movzbl %al,%edi; syscall
    let code = b"\xc6\x04\x25\0\0\x50\0\x07\x8a\x04\x25\0\0\x50\0\x0f\xb6\xf8\x0f\x05";
    let Some(mut vm) = guest(code) else { return };
    let fault = exception(vm.run());
    assert_eq!(
        (fault.vector, fault.address, fault.error_code),
        (14, 0x50_0000, 6)
    );
    assert_eq!(
        (fault.instruction_pointer, fault.stack_pointer),
        (CODE, STACK)
    );
    vm.space
        .map_new(0x50_0000, 1, Protection::READ, Owner::Program)
        .unwrap();
    let fault = exception(vm.run());
    assert_eq!((fault.vector, fault.error_code), (14, 7));
    vm.space.protect(0x50_0000, 1, Protection::READ_WRITE);
    let Exit::Syscall(call) = vm.run() else {
        panic!("no syscall")
    };
    assert_eq!(call.arguments[0], 7);
    let mut byte = [0u8];
    vm.space.slice(0x50_0000, 1).unwrap().copy_to(&mut byte);
    assert_eq!(byte, [7]);
}

#[test]
fn rights_that_are_taken_away_are_gone_at_once() {
    // 1: movb $1,0x500000; mov $39,%eax; syscall; jmp 1b
    let code = b"\xc6\x04\x25\0\0\x50\0\x01\xb8\x27\0\0\0\x0f\x05\xeb\xef";
    let Some(mut vm) = guest(code) else { return };
    vm.space
        .map_new(0x50_0000, 1, Protection::READ_WRITE, Owner::Program)
        .unwrap();
    let calls = |vm: &mut Vm| {
        assert!(matches!(vm.run(), Exit::Syscall(_)));
        vm.vcpu.answer(0);
    };
    calls(&mut vm);
    vm.space.protect(0x50_0000, 1, Protection::READ);
    assert_eq!(exception(vm.run()).error_code, 7);
    vm.space.protect(0x50_0000, 1, Protection::READ_WRITE);
    calls(&mut vm);
    vm.space.protect(0x50_0000, 1, Protection::NONE);
    assert_eq!(exception(vm.run()).error_code, 6);
    vm.space.protect(0x50_0000, 1, Protection::READ_WRITE);
    calls(&mut vm);
    vm.space
        .relocate(0x50_0000, 0x60_0000, 1, Protection::READ_WRITE)
        .unwrap();
    assert_eq!(exception(vm.run()).error_code, 6);
    vm.space
        .relocate(0x60_0000, 0x50_0000, 1, Protection::READ_WRITE)
        .unwrap();
    calls(&mut vm);
    vm.space.unmap(0x50_0000, 1);
    assert_eq!(exception(vm.run()).error_code, 6);
}

#[test]
fn ring_3_reaches_neither_ring_0_nor_privileged_instructions() {
    let privileged: [&[u8]; 6] = [
        b"\x8a\x04\x25\0\0\0\x81",     // mov RING0_BASE,%al
        b"\xc6\x04\x25\0\x30\0\x81\0", // movb $0,stubs
        b"\xf4",                       // hlt
        b"\x0f\x20\xd8",               // mov %cr3,%rax
        b"\x0f\x32",                   // rdmsr
        b"\xe6\x0e",                   // out %al,$14
    ];
    for code in privileged {
        let Some(mut vm) = guest(code) else { return };
        let fault = exception(vm.run());
        assert!(matches!(fault.vector, 13 | 14), "{code:x?}: {fault:?}");
        assert_eq!(fault.instruction_pointer, CODE);
    }
}

#[test]
fn untouched_memory_costs_nothing() {
    let Some(mut vm) = guest(b"\x0f\x0b") else {
        return;
    };
    let before = vm.space.resident_pages();
    vm.space
        .map_new(0x1000_0000, 4096, Protection::READ_WRITE, Owner::Program)
        .unwrap();
    assert!(vm.space.resident_pages() - before < 16);
    vm.space.reclaim_untouched(&[(0x1000_0000, 4096)]);
    assert_eq!(vm.space.translate(0x1000_0000), None);
}

#[test]
fn the_time_stamp_counter_is_the_host_s() {
    // rdtsc; shl $32,%rdx; or %rdx,%rax; mov %rax,%rdi; syscall
    let code = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\x48\x89\xc7\x0f\x05";
    let Some(mut vm) = guest(code) else { return };
    if !vm.vcpu.tsc_is_hosts() {
        return;
    }
    // SAFETY: every x86-64 processor has the instruction.
    let tsc = || unsafe { std::arch::x86_64::_rdtsc() };
    let before = tsc();
    let Exit::Syscall(call) = vm.run() else {
        panic!("no syscall")
    };
    assert!((before..tsc()).contains(&call.arguments[0]));
}

#[test]
fn ring_3_reads_the_time_page_and_cannot_write_it() {
    // movabs $TIME_PAGE,%rbx; mov 24(%rbx),%rdi; syscall; movb $0,(%rbx)
    let mut code = b"\x48\xbb".to_vec();
    code.extend(agentrt_shim_abi::TIME_PAGE.to_le_bytes());
    code.extend(b"\x48\x8b\x7b\x18\x0f\x05\xc6\x03\0");
    let Some(mut vm) = guest(&code) else { return };
    let page = agentrt_shim_abi::TimePage {
        sequence: 2,
        monotonic: 77,
        ..Default::default()
    };
    vm.time_page.write(vm.space.memory(), &page);
    let Exit::Syscall(call) = vm.run() else {
        panic!("no syscall")
    };
    assert_eq!(call.arguments[0], 77);
    vm.vcpu.answer(0);
    assert_eq!(exception(vm.run()).error_code, 7);
}

#[test]
fn the_vdso_makes_syscalls_where_the_time_page_tells_nothing() {
    // movabs $(time's way to a syscall),%rax; xor %edi,%edi; call *%rax; mov %rax,%rdi; syscall
    let image = agentrt_shim::vdso::image();
    let call_time = b"\xb8\xc9\0\0\0\x48\x8d\x0d"; // mov $201,%eax; lea …(%rip),%rcx
    let forward = image.windows(8).position(|bytes| bytes == call_time);
    let address = agentrt_shim_abi::VDSO_BASE + forward.unwrap() as u64;
    let mut code = b"\x48\xb8".to_vec();
    code.extend(address.to_le_bytes());
    code.extend(b"\x31\xff\xff\xd0\x48\x89\xc7\x0f\x05");
    let Some(mut vm) = guest(&code) else { return };
    let Exit::Syscall(call) = vm.run() else {
        panic!("no syscall")
    };
    assert_eq!((call.number, call.route), (201, Route::Patched));
    vm.vcpu.answer(5);
    let Exit::Syscall(call) = vm.run() else {
        panic!("no syscall")
    };
    assert_eq!((call.route, call.arguments[0]), (Route::Trapped, 5));
}
