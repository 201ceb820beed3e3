# Offsets, shared descriptions, appending, vectors and flags.
import errno, fcntl, os

def error(call, *arguments):
    try: return call(*arguments)
    except OSError as e: return errno.errorcode[e.errno]

fd = os.open("sparse", os.O_RDWR | os.O_CREAT)
big = (6 << 30) + 123
print(os.pwrite(fd, b"far", big), os.fstat(fd).st_size == big + 3, os.lseek(fd, big - 2, 0), os.read(fd, 99))
print(os.lseek(fd, -1, 1) == big + 2, os.lseek(fd, 5 << 30, 0), os.read(fd, 3), os.pread(fd, 2, big + 1))
print(os.lseek(fd, 0, os.SEEK_HOLE), error(os.lseek, fd, big + 3, os.SEEK_DATA), error(os.lseek, fd, 1 << 62, os.SEEK_HOLE))
print(os.fstat(fd).st_blocks < 1000, os.lseek(fd, (1 << 40), 0), os.read(fd, 1), os.ftruncate(fd, 0), os.fstat(fd).st_size)
os.close(fd)

fd = os.open("shared", os.O_RDWR | os.O_CREAT); copy = os.dup(fd); other = os.open("shared", os.O_RDWR)
os.write(fd, b"hello"); os.write(copy, b" world"); os.write(other, b"J"); print(os.lseek(copy, 0, 1), os.lseek(other, 0, 1), os.pread(fd, 99, 0))
os.lseek(copy, 2, 0); print(os.read(fd, 3)); os.close(fd); print(os.read(copy, 3))
fcntl.fcntl(copy, fcntl.F_SETFL, os.O_APPEND); os.lseek(copy, 0, 0); os.write(copy, b"!"); print(os.lseek(copy, 0, 1), os.pread(other, 99, 0))
print(bool(fcntl.fcntl(copy, fcntl.F_GETFL) & os.O_APPEND), fcntl.fcntl(other, fcntl.F_GETFL) & os.O_APPEND)
print(os.pwrite(copy, b"X", 0), os.pread(other, 99, 0))

a = os.open("append", os.O_WRONLY | os.O_CREAT | os.O_APPEND); b = os.open("append", os.O_WRONLY | os.O_APPEND)
for i in range(5): os.write(a, b"a%d" % i); os.write(b, b"b%d" % i)
os.lseek(a, 0, 0); os.write(a, b"end"); print(open("append", "rb").read())

d = os.dup2(a, 50); print(d, os.get_inheritable(50), os.get_inheritable(a), fcntl.fcntl(a, fcntl.F_DUPFD, 60), fcntl.fcntl(a, fcntl.F_DUPFD_CLOEXEC, 60))
print(fcntl.fcntl(61, fcntl.F_GETFD), fcntl.fcntl(60, fcntl.F_GETFD), fcntl.fcntl(61, fcntl.F_SETFD, 0), fcntl.fcntl(61, fcntl.F_GETFD))
print(os.dup2(50, 50), error(os.dup2, 999, 50), os.open("append", os.O_RDONLY) < 50, os.closerange(50, 100), error(os.fstat, 50))

v = os.open("vectors", os.O_RDWR | os.O_CREAT)
print(os.writev(v, [b"one", b"", b"two" * 1000, b"three"]), os.lseek(v, 0, 0), os.readv(v, [bytearray(1), bytearray(5000), bytearray(1)]))
buffers = [bytearray(2), bytearray(0), bytearray(4)]; print(os.preadv(v, buffers, 1), buffers, os.pwritev(v, [b"12", b"345"], 2), os.pread(v, 8, 0))
print(error(os.writev, v, [b"x"] * 1025), os.writev(v, [b"x"] * 1024), error(os.preadv, v, [bytearray(1)], -1))
print(os.sendfile(v, os.open("append", os.O_RDONLY), 0, 5), os.copy_file_range(os.open("append", os.O_RDONLY), v, 7, 2))

names = ["entry-%04d" % i for i in range(3000)]
os.mkdir("many")
for name in names: os.close(os.open("many/" + name, os.O_CREAT | os.O_WRONLY))
print(sorted(os.listdir("many")) == names)
with os.scandir("many") as it:
    seen = set()
    for entry in it: seen.add(entry.name); os.unlink("many/" + entry.name)
print(len(seen), os.listdir("many"), os.rmdir("many"))

import stat, time
before = time.time_ns() - 5_000_000_000
for name, action in [("write", lambda: os.write(v, b"x")), ("chmod", lambda: os.fchmod(v, 0o600)), ("truncate", lambda: os.ftruncate(v, 5))]:
    os.utime("vectors", (1, 1)); action(); s = os.stat("vectors"); print(name, s.st_mtime_ns > before, s.st_ctime_ns > before, s.st_atime)
print(fcntl.flock(v, fcntl.LOCK_EX | fcntl.LOCK_NB), fcntl.lockf(v, fcntl.LOCK_EX | fcntl.LOCK_NB), fcntl.flock(v, fcntl.LOCK_UN))
m = os.memfd_create("name", os.MFD_CLOEXEC); os.write(m, b"memory"); print(os.pread(m, 99, 0), os.readlink("/proc/self/fd/%d" % m), os.fstat(m).st_size)
