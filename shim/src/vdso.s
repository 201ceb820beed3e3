# The vDSO's image: an ELF shared object of one page, linked by hand at address 0.
#
# Rust fills in the constants in braces. Everything is addressed relative to the instruction
# pointer, the time page and the shim's entry included: they stand at fixed distances. The functions
# keep to the C ABI without a stack of their own, and use no vector register.

    .pushsection .rodata.agentrt_vdso, "a", @progbits
    .balign 64
    .globl agentrt_vdso
agentrt_vdso:
.Lvdso:

# ELF header (System V gABI, chapter 4).
    .ascii "\177ELF"
    .byte 2, 1, 1, 0                    # 64 bits, little endian, version 1, System V ABI
    .zero 8
    .short 3, 62                        # ET_DYN, EM_X86_64
    .long 1
    .quad 0                             # no entry
    .quad .Lvdso_segments - .Lvdso
    .quad 0                             # no section headers
    .long 0
    .short 64, 56, 3, 64, 0, 0

.Lvdso_segments:
    .long 1, 5                          # PT_LOAD, readable and executable
    .quad 0, 0, 0, {page_size}, {page_size}, {page_size}
    .long 2, 4                          # PT_DYNAMIC, readable
    .quad .Lvdso_dynamic - .Lvdso, .Lvdso_dynamic - .Lvdso, .Lvdso_dynamic - .Lvdso
    .quad .Lvdso_dynamic_end - .Lvdso_dynamic, .Lvdso_dynamic_end - .Lvdso_dynamic, 8
    .long 0x6474e550, 4                 # PT_GNU_EH_FRAME, readable
    .quad .Lvdso_unwind - .Lvdso, .Lvdso_unwind - .Lvdso, .Lvdso_unwind - .Lvdso
    .quad .Lvdso_frames - .Lvdso_unwind, .Lvdso_frames - .Lvdso_unwind, 4

.Lvdso_dynamic:
    .quad 14, .Lvdso_soname - .Lvdso_strings                # DT_SONAME
    .quad 4, .Lvdso_hash - .Lvdso                           # DT_HASH
    .quad 5, .Lvdso_strings - .Lvdso                        # DT_STRTAB
    .quad 6, .Lvdso_symbols - .Lvdso                        # DT_SYMTAB
    .quad 10, .Lvdso_strings_end - .Lvdso_strings           # DT_STRSZ
    .quad 11, 24                                            # DT_SYMENT
    .quad 0x6ffffff0, .Lvdso_symbol_versions - .Lvdso       # DT_VERSYM
    .quad 0x6ffffffc, .Lvdso_versions - .Lvdso              # DT_VERDEF
    .quad 0x6ffffffd, 2                                     # DT_VERDEFNUM
    .quad 0, 0
.Lvdso_dynamic_end:

# Each function under two names: the public one is weak, so that a program's own comes first. It is
# the tail of the other one's string.
    .macro agentrt_symbol function
    .long .Lvdso_name_\function - .Lvdso_strings
    .byte 0x12, 0                       # STB_GLOBAL, STT_FUNC
    .short 1                            # any section but the undefined and the absolute one
    .quad .Lvdso_\function - .Lvdso, .Lvdso_\function\()_end - .Lvdso_\function
    .long .Lvdso_name_\function + 7 - .Lvdso_strings
    .byte 0x22, 0                       # STB_WEAK, STT_FUNC
    .short 1
    .quad .Lvdso_\function - .Lvdso, .Lvdso_\function\()_end - .Lvdso_\function
    .endm

    .balign 8
.Lvdso_symbols:
    .zero 24
    agentrt_symbol clock_gettime
    agentrt_symbol gettimeofday
    agentrt_symbol time
    agentrt_symbol clock_getres
    agentrt_symbol getcpu
.Lvdso_symbols_end:
    .purgem agentrt_symbol

# One bucket: a chain through all symbols needs no hashes, and programs search it once.
.Lvdso_hash:
    .long 1, (.Lvdso_symbols_end - .Lvdso_symbols) / 24
    .long 1
    .long 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0

# The version of each symbol: an index into the definitions that follow (LSB, Symbol Versioning).
.Lvdso_symbol_versions:
    .short 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2

    .balign 4
.Lvdso_versions:
    .short 1, 1, 1, 1                   # the object itself (VER_FLG_BASE), index 1
    .long 0x0deebfa1, 20, 28
    .long .Lvdso_soname - .Lvdso_strings, 0
    .short 1, 0, 2, 1                   # index 2
    .long 0x03ae75f6, 20, 0
    .long .Lvdso_version - .Lvdso_strings, 0

.Lvdso_strings:
    .byte 0
.Lvdso_soname:
    .asciz "linux-vdso.so.1"
.Lvdso_version:
    .asciz "LINUX_2.6"
.Lvdso_name_clock_gettime:
    .asciz "__vdso_clock_gettime"
.Lvdso_name_gettimeofday:
    .asciz "__vdso_gettimeofday"
.Lvdso_name_time:
    .asciz "__vdso_time"
.Lvdso_name_clock_getres:
    .asciz "__vdso_clock_getres"
.Lvdso_name_getcpu:
    .asciz "__vdso_getcpu"
.Lvdso_strings_end:

# How to unwind (LSB, Exception Frames): a search table with one entry, and one frame for all code,
# which never moves the stack pointer.
    .balign 4
.Lvdso_unwind:
    .byte 1, 0x1b, 0x03, 0x3b           # version 1; encodings of frames' address, count, table
    .long .Lvdso_frames - .
    .long 1
    .long .Lvdso_text - .Lvdso_unwind, .Lvdso_frame - .Lvdso_unwind
    .balign 8
.Lvdso_frames:
    .long .Lvdso_frame - . - 4, 0
    .byte 1
    .asciz "zR"
    .byte 1, 0x78, 16, 1, 0x1b          # code by 1, data by -8, return address 16, pc-relative
    .byte 0x0c, 7, 8                    # the frame starts at rsp + 8 ...
    .byte 0x90, 1                       # ... with the return address below
    .balign 8
.Lvdso_frame:
    .long .Lvdso_frame_end - . - 4
    .long . - .Lvdso_frames
    .long .Lvdso_text - ., .Lvdso_text_end - .Lvdso_text
    .byte 0
    .balign 8
.Lvdso_frame_end:
    .long 0

    .set .Lvdso_time_page, .Lvdso - {time_page_distance}
    .set .Lvdso_entry, .Lvdso - {entry_distance}

# Reads a clock: nanoseconds in rax; rcx, rdx and r10 are used. Goes to `otherwise` if the page tells
# no time. The fence keeps the counter from being read before what it is compared with.
    .macro agentrt_read_clock base, otherwise
7:
    movl .Lvdso_time_page + {sequence}(%rip), %r10d
    testb $1, %r10b
    jnz 7b
    cmpl ${mode_tsc}, .Lvdso_time_page + {mode}(%rip)
    jne \otherwise
    lfence
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    xorl %ecx, %ecx
    subq .Lvdso_time_page + {tsc}(%rip), %rax
    cmovbq %rcx, %rax
    mulq .Lvdso_time_page + {multiplier}(%rip)
    shrdq ${multiplier_shift}, %rdx, %rax
    addq \base, %rax
    cmpl .Lvdso_time_page + {sequence}(%rip), %r10d
    jne 7b
    .endm

# Divides rax by 10^9: quotient in rdx, and rax is used. Exact for all 64 bits.
    .macro agentrt_to_seconds
    shrq $9, %rax
    movabsq $0x44b82fa09b5a53, %rdx
    mulq %rdx
    shrq $11, %rdx
    .endm

# As agentrt_to_seconds, and the remainder is in r8.
    .macro agentrt_split_seconds
    movq %rax, %r8
    agentrt_to_seconds
    imulq $1000000000, %rdx, %rax
    subq %rax, %r8
    .endm

# Makes the call that the function stands for, as a rewritten site does, and returns.
    .macro agentrt_forward number
    movl $\number, %eax
    leaq 8f(%rip), %rcx
    jmp .Lvdso_entry
8:
    ret
    .endm

    .balign 64, 0xcc
.Lvdso_text:

# int clock_gettime(clockid_t, struct timespec *)
.Lvdso_clock_gettime:
    cmpl $31, %edi
    ja 2f
    movl ${realtime_clocks}, %eax
    leaq .Lvdso_time_page + {realtime}(%rip), %r9
    btl %edi, %eax
    jc 1f
    movl ${monotonic_clocks}, %eax
    leaq .Lvdso_time_page + {monotonic}(%rip), %r9
    btl %edi, %eax
    jnc 2f
1:
    agentrt_read_clock (%r9), 2f
    agentrt_split_seconds
    movq %rdx, (%rsi)
    movq %r8, 8(%rsi)
    xorl %eax, %eax
    ret
2:
    agentrt_forward 228
.Lvdso_clock_gettime_end:

# int gettimeofday(struct timeval *, struct timezone *)
    .balign 16, 0xcc
.Lvdso_gettimeofday:
    testq %rdi, %rdi
    jz 1f
    agentrt_read_clock .Lvdso_time_page+{realtime}(%rip), 3f
    agentrt_split_seconds
    imulq $274877907, %r8, %r8          # nanoseconds to microseconds: exact for 32 bits
    shrq $38, %r8
    movq %rdx, (%rdi)
    movq %r8, 8(%rdi)
1:
    testq %rsi, %rsi
    jz 2f
    movq $0, (%rsi)                     # UTC, no daylight saving time
2:
    xorl %eax, %eax
    ret
3:
    agentrt_forward 96
.Lvdso_gettimeofday_end:

# time_t time(time_t *)
    .balign 16, 0xcc
.Lvdso_time:
    agentrt_read_clock .Lvdso_time_page+{realtime}(%rip), 2f
    agentrt_to_seconds
    movq %rdx, %rax
    testq %rdi, %rdi
    jz 1f
    movq %rax, (%rdi)
1:
    ret
2:
    agentrt_forward 201
.Lvdso_time_end:

# int clock_getres(clockid_t, struct timespec *)
    .balign 16, 0xcc
.Lvdso_clock_getres:
    cmpl $31, %edi
    ja 2f
    movl ${realtime_clocks} | {monotonic_clocks}, %eax
    btl %edi, %eax
    jnc 2f
    testq %rsi, %rsi
    jz 1f
    movq $0, (%rsi)
    movq $1, 8(%rsi)
1:
    xorl %eax, %eax
    ret
2:
    agentrt_forward 229
.Lvdso_clock_getres_end:

# int getcpu(unsigned *cpu, unsigned *node, void *): there is one of each.
    .balign 16, 0xcc
.Lvdso_getcpu:
    xorl %eax, %eax
    testq %rdi, %rdi
    jz 1f
    movl %eax, (%rdi)
1:
    testq %rsi, %rsi
    jz 2f
    movl %eax, (%rsi)
2:
    ret
.Lvdso_getcpu_end:

.Lvdso_text_end:
    .purgem agentrt_read_clock
    .purgem agentrt_to_seconds
    .purgem agentrt_split_seconds
    .purgem agentrt_forward

    .org .Lvdso + {page_size}, 0xcc
    .popsection
