# Prints what file calls answer in odd cases, one line each.
import errno, fcntl, os, stat, sys

def show(value):
    if isinstance(value, os.stat_result):
        return "%o %d %d" % (value.st_mode, value.st_nlink, 0 if stat.S_ISDIR(value.st_mode) else value.st_size)
    if isinstance(value, (list, tuple)):
        return str(sorted(map(str, value)))
    return str(value)

def t(name, *arguments, **keywords):
    function = getattr(os, name, None) or getattr(fcntl, name)
    try:
        result = show(function(*arguments, **keywords))
    except OSError as error:
        result = errno.errorcode.get(error.errno, error.errno)
    except (ValueError, OverflowError) as error:
        result = type(error).__name__
    print(name, *[a if not isinstance(a, bytes) or len(a) < 50 else len(a) for a in arguments], keywords or "", "=", result)
    return result

def f(name, contents=b""):
    with open(name, "wb") as file: file.write(contents)

os.umask(0o022)
top = os.getcwd()
os.mkdir("d"); os.mkdir("d/sub"); os.mkdir("empty"); f("file", b"0123456789"); f("d/inner", b"x"); f("d/sub/deep")
os.symlink("file", "link"); os.symlink("nowhere", "broken"); os.symlink("loop", "loop"); os.symlink("d", "dlink")
os.symlink("/", "root"); os.link("file", "hard")
R, W, RW, C, X, T, A = os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND
D, N, P = os.O_DIRECTORY, os.O_NOFOLLOW, os.O_PATH
long, longer = "n" * 255, "n" * 256
deep = "d/" + "./" * 2100 + "inner"

print("# open")
def opened(path, flags, mode=0o777):
    result = t("open", path, flags, mode)
    if result.isdigit(): os.close(int(result))
for path in ["file", "d", "link", "broken", "loop", "nowhere", "", "file/", "file/x", "link/", "d/", "d/.", "d/..", ".", "dlink",
             "dlink/", "dlink/inner", "broken/x", "loop/x", "nowhere/x", longer, "root/etc/passwd"]:
    for flags in [R, W, D, N, P, D | N, W | C | X, D | P | N]:
        if path == "nowhere" and flags & C: continue
        opened(path, flags)
        if flags & C:
            for made in [path, "made"]:
                if made in ("nowhere", longer) and os.path.lexists(made): os.remove(made)
opened(long, W | C); os.remove(long)
opened(deep, R)
opened("new/", W | C); opened("d", W | C); opened("d", R | C); opened("broken", W | C | X); opened("broken", W | C)
print(os.path.lexists("nowhere")); os.path.lexists("nowhere") and os.remove("nowhere")
opened("file", R | T); print(os.stat("file").st_size); f("file", b"0123456789")
opened("file", 3); opened("d", os.O_TMPFILE | R); opened("file", os.O_TMPFILE | RW)
opened("perm", W | C, 0o1777); print(oct(os.stat("perm").st_mode)); os.remove("perm")
opened("perm", R | C | X, 0o000); print(oct(os.stat("perm").st_mode)); os.remove("perm")
opened("/dev/null", R | D); opened("/dev/null/x", R)

print("# mkdir rmdir unlink")
for path in ["d", "file", "link", "broken", "dlink", "", "nowhere/x", "file/x", "d/new/", ".", "..", "d/.", "/", longer, "loop/x", "newdir"]:
    t("mkdir", path, 0o777)
t("mkdir", "sticky", 0o1777); print(oct(os.stat("sticky").st_mode))
for path in ["file", "link", "dlink", "dlink/", "d", "d/sub", "empty/.", "empty/..", ".", "..", "", "nowhere", "file/x", "newdir/", "d/new", "sticky", "/"]:
    t("rmdir", path)
for path in ["d", "d/", ".", "", "nowhere", "file/", "file/x", "link/", "dlink/", "broken", "loop", longer, "/"]:
    t("unlink", path)
os.symlink("nowhere", "broken"); os.symlink("loop", "loop")

print("# rename link symlink")
os.mkdir("e1"); os.mkdir("e2"); f("r1", b"1"); f("r2", b"22")
for a, b in [("nowhere", "x"), ("file", "d"), ("d", "file"), ("d", "d/sub/x"), ("d", "d"), ("file", "file"), ("file", "hard"),
             ("e1", "d"), ("d", "e1"), ("e2", "d"), ("r1", "r2"), ("r2", "nowhere/x"), ("r2", "file/x"), ("r2", "x/"), ("e2", "x/"),
             ("x", "e2/"), ("", "x"), ("r2", ""), (".", "x"), ("d/.", "x"), ("..", "x"), ("r2", "."), ("link", "link2"), ("link2", "link"),
             ("broken", "b2"), ("b2", "broken"), ("r2", longer), ("r2/", "y"), ("dlink/", "y"), ("dlink", "dlink"),
             ("r2", "loop/x"), ("r2", "/proc/x"), ("d", "d/")]:
    t("rename", a, b)
print(sorted(os.listdir(".")), sorted(os.listdir("e1")) if os.path.isdir("e1") else "no e1")
for path in ["e1", "d"]:
    if os.path.exists(os.path.join(path, "sub")): base = path
for a, b in [("file", "l1"), ("nowhere", "l2"), (base, "l3"), ("file", "file"), ("link", "l4"), ("broken", "l5"), ("file", "nowhere/x"),
             ("file", "l6/"), ("", "l7"), ("file", ""), ("file/", "l8"), ("/proc/version", "l10")]:
    t("link", a, b)
t("link", "link", "l11", follow_symlinks=False); t("link", "link", "l12", follow_symlinks=True)
print(os.lstat("file").st_nlink)
for a, b in [("x", "file"), ("", "s1"), ("x", ""), ("x", "nowhere/x"), ("x", "file/x"), ("x", "s2/"), ("y" * 4095, "s3"), ("y" * 4096, "s4"), ("x", "dlink/s5")]:
    t("symlink", a, b)
t("readlink", "s3"); t("readlink", "file"); t("readlink", base); t("readlink", ""); t("readlink", "link/"); t("readlink", "nowhere")

print("# chmod truncate utime stat access")
for path in ["file", "link", "broken", "", "nowhere", base, "file/"]:
    t("chmod", path, 0o604); t("stat", path); t("lstat", path); t("access", path, os.R_OK); t("access", path, os.F_OK)
t("access", "file", os.X_OK); t("access", "file", 8); t("access", "file", -1)
t("chmod", "file", 0o101777); print(oct(os.stat("file").st_mode)); t("chmod", "file", 0o600)
for length in [0, 5, 100, -1, 1 << 40, (1 << 63) - 1, 10]:
    t("truncate", "file", length)
t("truncate", base, 0); t("truncate", "broken", 0); t("truncate", "", 0)
t("utime", "file", (1, 2)); print(os.stat("file").st_mtime_ns); t("utime", "file", ns=(-1500000000, 1500000000)); print(os.stat("file").st_atime_ns)
t("utime", "nowhere"); t("utime", "link", (5, 6), follow_symlinks=False); print(os.lstat("link").st_mtime)
t("chown", "file", -1, -1); t("chown", "nowhere", 0, 0)
t("statvfs", "nowhere"); t("pathconf", "file", "PC_NAME_MAX")

print("# descriptors")
fd = os.open("file", RW); dirfd = os.open(base, R); pathfd = os.open("file", P); rfd = os.open("file", R); wfd = os.open("file", W | A)
for d in [fd, dirfd, pathfd, rfd, wfd, 99, -1]:
    name = {fd: "rw", dirfd: "dir", pathfd: "path", rfd: "r", wfd: "w"}.get(d, "bad")
    print("#", name)
    t("read", d, 3); t("write", d, b"ab"); t("pread", d, 3, 1); t("pread", d, 3, -1); t("pwrite", d, b"z", 2); t("read", d, 0); t("write", d, b"")
    t("lseek", d, 0, 0)
    if name == "dir": continue # positions in directories are the file system's own
    t("lseek", d, -1, 0); t("lseek", d, -3, 2); t("lseek", d, 5, 1); t("lseek", d, 0, 9); t("lseek", d, 1 << 40, 0); t("lseek", d, 0, 0)
    t("lseek", d, 0, os.SEEK_DATA); t("lseek", d, 0, os.SEEK_HOLE); t("lseek", d, 1 << 30, os.SEEK_DATA); t("lseek", d, 0, 0)
for d in [fd, dirfd, pathfd, rfd, wfd, 99, -1]:
    t("ftruncate", d, 12); t("fchmod", d, 0o640); t("fsync", d); t("fdatasync", d); t("fchdir", d) if d != dirfd else None
    t("fstat", d); t("readv", d, [bytearray(2), bytearray(0), bytearray(3)]); t("writev", d, [b"1", b"", b"22"])
    t("posix_fallocate", d, 0, 20); t("posix_fallocate", d, 0, 0); t("posix_fadvise", d, 0, 0, 0); t("posix_fadvise", d, 0, 0, 99)
    t("fcntl", d, fcntl.F_GETFL) if d not in (dirfd,) else None
    t("fcntl", d, fcntl.F_GETFD); t("fcntl", d, 9999); t("fcntl", d, fcntl.F_DUPFD, 1 << 30)
    t("isatty", d); t("listdir", d)
print(open("file", "rb").read())
for d in [fd, dirfd, pathfd, rfd, wfd]: os.close(d)
t("close", fd); t("close", -1); t("dup", 99); t("dup2", 99, 98); t("dup2", 1, -1)

print("# relative to directories")
dirfd, filefd = os.open(base, R), os.open("file", R)
for path in ["inner", "../file", "", ".", "nowhere"]:
    for at in [dirfd, filefd, 99]:
        t("stat", path, dir_fd=at)
t("mkdir", "atnew", dir_fd=dirfd); t("rmdir", "atnew", dir_fd=dirfd); t("unlink", "sub", dir_fd=dirfd)
t("rename", "file", "inside", dst_dir_fd=dirfd); t("rename", "inside", "file", src_dir_fd=dirfd)
t("symlink", "x", "s", dir_fd=dirfd); t("readlink", "s", dir_fd=dirfd); t("access", "inner", os.R_OK, dir_fd=dirfd)
t("chmod", "inner", 0o600, dir_fd=dirfd); t("chdir", "nowhere"); t("chdir", "file"); t("chdir", "")
os.chdir(base); print(os.path.basename(os.getcwd())); os.chdir(".."); t("chdir", "dlink"); os.chdir("..") if os.path.basename(os.getcwd()) == base else None

print("# removed")
os.chdir(top)
f("gone", b"still here"); g = os.open("gone", RW); os.unlink("gone"); t("fstat", g); t("read", g, 99); t("write", g, b"!"); t("ftruncate", g, 3); t("lseek", g, 0, 2)
print(sorted(os.listdir(".")))
