# Tries to get out of an image, with a writable volume at /data. Secrets lie beside the image and beside the volume. Prints
# what it got; the host looks for the secret in it. Each attempt is a function named for its way.
import ctypes, errno, fcntl, os, struct, sys

HOST_SECRET, ATTEMPTS = sys.argv[1], []
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
AT_FDCWD, O_PATH, R = -100, os.O_PATH, os.O_RDONLY
UP = "../" * 40

def call(number, *arguments):
    converted = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *converted)
    if result < 0: raise OSError(ctypes.get_errno(), errno.errorcode.get(ctypes.get_errno(), "?"))
    return result

def attempt(function): ATTEMPTS.append(function); return function
def read(path, **keywords):
    fd = os.open(path, R, **keywords)
    try: return os.read(fd, 4096)
    except IsADirectoryError: return " ".join(os.listdir(fd))
def try_all(*paths, **keywords):
    results = []
    for path in paths:
        try: results.append(read(path, **keywords))
        except OSError as error: results.append(errno.errorcode[error.errno])
    return results
def beneath(directory): return [directory + "/" + UP + HOST_SECRET.lstrip("/"), directory + "/..", directory + "/../secret", directory + "/../../secret"]

@attempt
def absolute(): return try_all(HOST_SECRET, "/" + HOST_SECRET, "/./" + HOST_SECRET)
@attempt
def dots(): return try_all(UP + HOST_SECRET[1:], *beneath("/data"), *beneath("/bin"), *beneath("/data/sub"), *beneath("/proc/self"), *beneath("/dev"), *beneath("/tmp"))
@attempt
def dots_from_directories():
    os.chdir("/data/sub"); r = try_all("../../secret", "../../../secret", UP + HOST_SECRET[1:]); os.chdir("/"); return r
@attempt
def absolute_link(): os.symlink(HOST_SECRET, "/tmp/l1"); return try_all("/tmp/l1")
@attempt
def dotted_link(): os.symlink(UP + HOST_SECRET[1:], "/tmp/l2"); return try_all("/tmp/l2")
@attempt
def links_of_the_host(): return try_all("/data/absolute", "/data/relative", "/data/up", "/data/up/secret", "/data/sub/up", "/data/root" + HOST_SECRET, "/image-link", "/image-up/secret")
@attempt
def new_links_in_the_volume():
    for name, target in [("n1", HOST_SECRET), ("n2", "../secret"), ("n3", UP + HOST_SECRET[1:]), ("n4", "/"), ("n5", "..")]: os.symlink(target, "/data/" + name)
    return try_all("/data/n1", "/data/n2", "/data/n3", "/data/n4" + HOST_SECRET, "/data/n5/secret")
@attempt
def link_through_a_link(): os.symlink("/data/sub/..", "/data/n6"); os.symlink("n6/../..", "/data/n7"); return try_all("/data/n7/secret", "/data/n7" + HOST_SECRET)
@attempt
def proc_root(): return try_all("/proc/self/root" + HOST_SECRET, "/proc/self/root/.." + HOST_SECRET, "/proc/1/root" + HOST_SECRET, "/proc/1/root/../secret", "/proc/thread-self/root" + HOST_SECRET)
@attempt
def proc_cwd():
    os.chdir("/data/sub"); r = try_all("/proc/self/cwd/../../secret", "/proc/self/cwd/" + UP + HOST_SECRET[1:]); os.chdir("/"); return r
@attempt
def proc_exe(): return try_all("/proc/self/exe/../secret", "/proc/self/exe/" + UP + HOST_SECRET[1:])
@attempt
def proc_descriptors():
    d, f = os.open("/data/sub", R), os.open("/data/file", R)
    return try_all(f"/proc/self/fd/{d}/../../secret", f"/proc/self/fd/{d}/" + UP + HOST_SECRET[1:], f"/proc/self/fd/{f}/../secret", *[f"/proc/self/fd/{n}/../secret" for n in range(3)])
@attempt
def proc_of_others(): return try_all(*[f"/proc/{pid}/{what}" for pid in (2, os.getppid(), 1234) for what in ("root" + HOST_SECRET, "cwd", "environ", "fd/0")])
@attempt
def from_descriptors():
    r = []
    for path in ["/", "/data", "/data/sub", "/proc/self", "/dev", "/tmp"]:
        d = os.open(path, O_PATH | os.O_DIRECTORY)
        r += try_all("../secret", "../../secret", UP + HOST_SECRET[1:], "..", dir_fd=d)
        os.fchdir(d); r += try_all("../secret", UP + HOST_SECRET[1:]); os.chdir("/")
    return r
@attempt
def openat2():
    r = []
    for path in [b"../secret", b"../../secret", (UP + HOST_SECRET[1:]).encode(), HOST_SECRET.encode(), b"up/secret", b"absolute", b"n1"]:
        for resolve in range(0, 64):
            for d in (os.open("/data", R), os.open("/data/sub", O_PATH), AT_FDCWD):
                how = struct.pack("QQQ", R, 0, resolve)
                try: fd = call(437, d, path, how, 24); r.append(os.read(fd, 100)); os.close(fd)
                except OSError: pass
                if d >= 0: os.close(d)
    return r
@attempt
def moved_directory():
    # A directory that is held open leaves the place that its parent was.
    os.makedirs("/data/m/a/b/c"); d = os.open("/data/m/a/b/c", R); os.rename("/data/m/a/b", "/data/m2")
    r = try_all("../../secret", "../../../secret", "../../../../secret", UP + HOST_SECRET[1:], dir_fd=d)
    os.rename("/data/m2/c", "/data/c"); r += try_all("../secret", "../../secret", "../../../secret", dir_fd=d)
    try: os.fchdir(d); r += try_all("../../secret", "../..")
    except OSError as error: r.append(errno.errorcode[error.errno])
    os.chdir("/"); return r
@attempt
def moved_across():
    os.makedirs("/tmp/x/y"); d = os.open("/tmp/x/y", R)
    for a, b in [("/tmp/x", "/data/x"), ("/data/sub", "/tmp/sub")]:
        try: os.rename(a, b)
        except OSError as error: print("moved_across", errno.errorcode[error.errno])
    return try_all("../../secret", UP + HOST_SECRET[1:], dir_fd=d)
@attempt
def removed_directory():
    os.makedirs("/data/gone/a"); d = os.open("/data/gone/a", R); os.rmdir("/data/gone/a"); os.rmdir("/data/gone")
    return try_all("..", "../..", "../../secret", "../../../secret", dir_fd=d)
@attempt
def hard_link():
    r = []
    for source in [HOST_SECRET, "/data/absolute", "/data/relative", "/data/up/secret", "/proc/self/fd/0"]:
        for follow in (True, False):
            try: os.link(source, "/data/hard", follow_symlinks=follow); r += try_all("/data/hard"); os.unlink("/data/hard")
            except OSError as error: r.append(errno.errorcode[error.errno])
    return r
@attempt
def write_through_links():
    r = []
    for path in ["/data/absolute", "/data/relative", "/data/up/secret", "/data/up/new", "/data/dangling", "/image-link", "/proc/self/root/../new"]:
        for flags in (os.O_WRONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
            try: fd = os.open(path, flags); os.write(fd, b"overwritten"); os.close(fd); r.append("written inside")
            except OSError as error: r.append(errno.errorcode[error.errno])
        for action in (os.mkdir, os.rmdir, lambda p: os.truncate(p, 0), lambda p: os.chmod(p, 0), lambda p: os.rename(p, p + "2"), lambda p: os.chown(p, 1, 1)):
            if path.startswith("/data/up") or "root" in path:
                try: action(path)
                except OSError: pass
    return r
@attempt
def chroot():
    r = []
    for directory in (b"/data", b"/data/sub", b"/tmp", b".."):
        try: call(161, directory); r.append("changed")
        except OSError as error: r.append(str(error))
        r += try_all("../secret", UP + HOST_SECRET[1:], HOST_SECRET)
    return r
@attempt
def refused_calls():
    r = []
    null, one = 0, ctypes.byref(ctypes.c_long(1))
    calls = {"mount": (165, b"/", b"/tmp", b"none", 4096, 0), "mount_proc": (165, b"proc", b"/tmp", b"proc", 0, 0), "umount": (166, b"/proc", 2), "pivot_root": (155, b"/", b"/tmp"),
        "unshare": (272, 0x10000000), "setns": (308, 0, 0), "ptrace": (101, 16, 1, 0, 0), "ptrace_me": (101, 0, 0, 0, 0), "kexec": (246, 0, 0, 0, 0), "kexec_file": (320, 0, 0, 0, b"", 0),
        "bpf": (321, 0, one, 128), "io_uring": (425, 8, bytes(120)), "userfaultfd": (323, 0), "process_vm_readv": (310, 1, one, 1, one, 1, 0), "init_module": (175, b"x", 1, b""),
        "finit_module": (313, 0, b"", 0), "delete_module": (176, b"kvm", 0), "reboot": (169, 0xfee1dead, 672274793, 0x1234567, 0), "swapon": (167, b"/data/file", 0), "iopl": (172, 3), "ioperm": (173, 0, 64, 1),
        "perf_event": (298, bytes(128), 0, -1, -1, 0), "add_key": (248, b"user", b"x", b"y", 1, -1), "keyctl": (250, 0, 0, 0), "fsopen": (430, b"tmpfs", 0), "open_tree": (428, AT_FDCWD, b"/", 1),
        "move_mount": (429, AT_FDCWD, b"/data", AT_FDCWD, b"/tmp", 0), "fsmount": (432, 0, 0, 0), "settimeofday": (164, bytes(16), 0), "clock_settime": (227, 0, bytes(16)), "sethostname": (170, b"x", 1),
        "acct": (163, b"/data/file"), "quotactl": (179, 0, b"/", 0, 0), "syslog": (103, 2, bytes(100), 100), "modify_ldt": (154, 1, bytes(16), 16), "pidfd_open": (434, 1, 0), "pidfd_getfd": (438, 0, 0, 0),
        "seccomp": (317, 1, 0, 0), "landlock": (444, 0, 0, 1), "fanotify": (300, 0, 0), "vhangup": (153,), "lookup_dcookie": (212, 0, 0, 0), "mknod": (133, b"/tmp/node", 0o60600, 0x0800), "mknod_mem": (133, b"/tmp/mem", 0o20600, 0x0101),
        "mknod_kvm": (133, b"/data/kvm", 0o20600, (10 << 8) | 232), "personality": (135, 0x0040000), "kcmp": (312, 1, 1, 0, 0, 0), "migrate_pages": (256, 1, 1, 0, 0), "memfd_secret": (447, 0)}
    for name, arguments in calls.items():
        try: call(*arguments); r.append(name)
        except OSError: pass
    return "allowed: " + " ".join(r)
@attempt
def device_nodes():
    r = []
    for name, kind, number in [("sda", 0o60600, os.makedev(8, 0)), ("mem", 0o20600, os.makedev(1, 1)), ("kvm", 0o20600, os.makedev(10, 232)), ("tty", 0o20600, os.makedev(5, 0)), ("kmsg", 0o20600, os.makedev(1, 11))]:
        for directory in ("/tmp", "/data", "/dev"):
            try: os.mknod(f"{directory}/{name}", kind, number); os.read(os.open(f"{directory}/{name}", R), 16); r.append(f"opened {directory}/{name}")
            except OSError: pass
    return r
@attempt
def dev_mem(): return try_all("/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore", "/dev/kvm", "/dev/sda", "/proc/self/mem")
@attempt
def file_handles():
    r = []
    for path in (b"/", b"/data", b"/data/file", b"/data/sub"):
        handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)); mount = ctypes.c_int()
        try: call(303, AT_FDCWD, path, handle, ctypes.byref(mount), 0); r.append("got a handle")
        except OSError as error: r.append(str(error))
        for inode in (2, 128, 256):
            made = ctypes.create_string_buffer(struct.pack("IiII", 8, 1, inode, 0))
            try: fd = call(304, os.open(path, R), made, R); r.append("got in")
            except OSError as error: r.append(str(error))
    return r
@attempt
def control_calls():
    r = []
    for path in ("/data/file", "/data", "/tmp", "/bin/busybox", "/dev/null"):
        fd = os.open(path, R); other = os.open("/data/file", R)
        for request, argument in [(0x40049409, other), (0x801c581f, 0), (0xc0104c80, 0), (0x5421, 0), (0x1268, 0), (0xae00, 0), (0x5412, 0), (0x541d, 0), (0x540e, 0), (0x40086602, 0), (0xc0185879, 0), (0xb702, 0)]:
            try: fcntl.ioctl(fd, request, argument); r.append("%s %#x" % (path, request))
            except (OSError, ValueError): pass
        os.close(fd); os.close(other)
    return r
@attempt
def proc_writes():
    r = []
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger", "/proc/self/uid_map", "/proc/self/setgroups", "/sys/kernel/uevent_helper", "/proc/1/oom_score_adj", "/proc/self/exe", "/proc/1/mem"):
        try: os.write(os.open(path, os.O_WRONLY), b"x"); r.append(path)
        except OSError: pass
    return "written: " + " ".join(r)
@attempt
def long_chains():
    os.makedirs("/data/deep", exist_ok=True); os.chdir("/data/deep")
    for i in range(300): os.mkdir("d"); os.chdir("d")
    r = try_all("../" * 301 + "../secret", "../" * 302 + "../secret", "../" * 1300 + HOST_SECRET[1:]); r.append(len(os.getcwd()) > 500); os.chdir("/"); return r
@attempt
def link_loops():
    for i in range(60): os.symlink(f"/data/chain{i + 1}", f"/data/chain{i}")
    os.symlink(HOST_SECRET, "/data/chain60"); return try_all("/data/chain0", "/data/chain30", "/data/chain59")
@attempt
def strange_names():
    for name in (b"a\nb", b"\xff\xfe", b"...", b" ", b"..\x01"): open(b"/data/" + name, "w").close()
    return try_all(b"/data/.../../secret", b"/data/ /../../secret", b"/data//..//..//secret", b"/data/./.././../secret")
@attempt
def standard_streams():
    r = []
    for n in range(3):
        try: r += [os.readlink(f"/proc/self/fd/{n}"), str(os.fstat(n).st_dev)]
        except OSError as error: r.append(str(error))
    return r

for function in ATTEMPTS:
    try: result = function()
    except OSError as error: result = "failed with " + str(error)
    print(function.__name__, result, flush=True)
