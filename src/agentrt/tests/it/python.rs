//! Debian's Python: its standard library, and longer programs.

use std::time::Duration;

use super::harness::{Ended, Job, Volume, tests};

tests![
    every_module,
    json_and_text,
    hashes_and_compression,
    ssl_contexts,
    sqlite_in_memory,
    sqlite_in_a_file,
    numbers,
    foreign_functions,
    urls,
    files,
    trees,
    uncaught_exception,
    exit_codes,
    deep_recursion,
    interpreter_options,
    standard_input,
    clocks,
];

/// Tries each module of the standard library, and prints what came of it.
const EVERY_MODULE: &str = r#"
import importlib, io, os, sys
skipped = {"this", "antigravity", "__phello__"}
names = sorted(sys.stdlib_module_names - skipped)
results = []
for name in names:
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        importlib.import_module(name)
        result = "ok"
    except BaseException as error:
        result = type(error).__name__ + " " + str(error)
    sys.stdout = out
    results.append(name + ": " + result)
print("\n".join(results))
sys.stdout.flush()
os._exit(0)
"#;

fn every_module() {
    let outcome = Job::python(EVERY_MODULE)
        .limit(Duration::from_secs(120))
        .same();
    assert!(outcome.out().matches(": ok").count() > 200, "{outcome:?}");
}

fn json_and_text() {
    let script = r#"
import json, re, textwrap, csv, io, string, difflib, html, base64, struct, pprint, collections
data = {"name": "ä\u20ac\U0001f600", "list": list(range(100)), "nested": {"x": [None, True, 1.5e300, -0.0]}}
text = json.dumps(data, indent=1, sort_keys=True)
assert json.loads(text) == data
print(text)
print(re.sub(r"(\w+) (\w+)", r"\2 \1", "hello world, good bye"))
print(textwrap.fill("lorem ipsum dolor sit amet " * 20, 40))
out = io.StringIO(); csv.writer(out).writerows([[1, 'a "quoted" one', "x,y"], [2, "\n", ""]]); print(out.getvalue())
print("\n".join(difflib.unified_diff("a b c d".split(), "a x c d e".split(), lineterm="")))
print(html.escape("<a & b>"), base64.b64encode(bytes(range(256))), struct.pack("<qdH", -5, 2.5, 99))
pprint.pprint(collections.Counter("mississippi").most_common())
"#;
    Job::python(script).same().ok();
}

fn hashes_and_compression() {
    let script = r#"
import hashlib, hmac, zlib, gzip, bz2, lzma, binascii, random
random.seed(42)
data = bytes(random.getrandbits(8) for _ in range(200_000)) + b"x" * 200_000
for name in sorted(hashlib.algorithms_guaranteed):
    h = hashlib.new(name, data)
    print(name, h.hexdigest(16) if name.startswith("shake") else h.hexdigest())
print(hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1000).hex(), hashlib.scrypt(b"p", salt=b"s", n=1024, r=8, p=1).hex())
print(hmac.new(b"key", data, "sha512").hexdigest(), zlib.crc32(data), zlib.adler32(data), binascii.crc_hqx(data, 0))
for module in zlib, gzip, bz2, lzma:
    packed = module.compress(data)
    assert module.decompress(packed) == data
    print(module.__name__, len(packed) if module is not gzip else "-")
"#;
    Job::python(script).same().ok();
}

fn ssl_contexts() {
    let script = r#"
import ssl, hashlib
context = ssl.create_default_context()
print(context.check_hostname, context.verify_mode, len(context.get_ca_certs()) > 0, ssl.OPENSSL_VERSION)
print([cipher["name"] for cipher in context.get_ciphers()])
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
connection = context.wrap_bio(incoming, outgoing, server_hostname="example.org")
try: connection.do_handshake()
except ssl.SSLWantReadError: print("hello sent", outgoing.pending > 200)
print(len(ssl.RAND_bytes(32)), hashlib.new("sha3_256", b"x").hexdigest())
"#;
    Job::python(script).same().ok();
}

/// A table with contents that are the same each time.
const SQLITE: &str = r#"
import sqlite3
connection = sqlite3.connect(PATH)
print(connection.execute("pragma journal_mode = " + JOURNAL).fetchall())
connection.execute("create table items (id integer primary key, name text, price real, data blob)")
rows = [(i, f"item {i * 7919 % 1000}", i * 1.25, bytes([i % 256]) * (i % 50)) for i in range(5000)]
with connection: connection.executemany("insert into items values (?, ?, ?, ?)", rows)
connection.execute("create index names on items (name)")
with connection:
    connection.execute("delete from items where id % 3 = 0")
    connection.execute("update items set price = price * 2 where name like '%7%'")
try:
    with connection:
        connection.execute("delete from items")
        raise KeyError
except KeyError: pass
print(connection.execute("select count(*), sum(price), max(name), sum(length(data)) from items").fetchall())
print(connection.execute("select name, count(*) n from items group by name order by n desc, name limit 5").fetchall())
connection.execute("vacuum")
print(connection.execute("pragma integrity_check").fetchall())
connection.close()
"#;

fn sqlite(path: &str, journal: &str) -> Job {
    Job::python(&format!("PATH = {path:?}; JOURNAL = {journal:?}\n{SQLITE}"))
}

fn sqlite_in_memory() {
    sqlite(":memory:", "memory").same().ok();
}

fn sqlite_in_a_file() {
    for journal in ["delete", "truncate", "off"] {
        sqlite("items.db", journal).same_in(&Volume::new()).ok();
    }
    // In the writable layer, too.
    let outcome = sqlite("/tmp/it-items.db", "delete").guest().ok();
    assert!(outcome.out().contains("('ok',)"), "{outcome:?}");
    assert!(!std::path::Path::new("/tmp/it-items.db").exists());
}

fn numbers() {
    let script = r#"
import decimal, fractions, math, statistics, random, cmath, array, itertools, heapq, functools
decimal.getcontext().prec = 200
print(decimal.Decimal(2).sqrt(), fractions.Fraction(355, 113) ** 5)
print(math.factorial(500), pow(3, 10**5, 10**9 + 7), 7**3000 % 10**50)
random.seed(1); values = [random.gauss(0, 1) for _ in range(20000)]
print(statistics.mean(values), statistics.stdev(values), math.fsum(values), cmath.sqrt(-2))
print([f(0.7) for f in (math.sin, math.exp, math.lgamma, math.erf, math.atanh)], float.hex(0.1 + 0.2))
a = array.array("d", values); print(sum(a[::7]), heapq.nlargest(3, a))
@functools.lru_cache(None)
def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
print(fibonacci(300), sum(1 for _ in itertools.permutations(range(8))))
"#;
    Job::python(script).same().ok();
}

fn foreign_functions() {
    let script = r#"
import ctypes, ctypes.util
libc = ctypes.CDLL("libc.so.6")
print(libc.abs(-5), libc.strlen(b"four"), libc.toupper(ord("a")))
numbers = (ctypes.c_int * 6)(5, 3, 9, 1, 7, 2)
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
def compare(a, b): return a[0] - b[0]
libc.qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), compare)
print(list(numbers))
libm = ctypes.CDLL("libm.so.6"); libm.cos.restype = ctypes.c_double; libm.cos.argtypes = [ctypes.c_double]
print(libm.cos(1.0))
"#;
    Job::python(script).same().ok();
}

fn urls() {
    let script = r#"
import urllib.parse, urllib.request, http.client, http.cookies, email.message, mimetypes
print(urllib.parse.urlsplit("https://user@example.org:8443/a/b;c?q=1&q=2#frag"))
print(urllib.parse.quote("ä b/c"), urllib.parse.parse_qs("a=1&a=2&b="))
print(urllib.request.urlopen("data:text/plain;base64,aGVsbG8=").read(), urllib.request.urlopen("file:///etc/hostname").status)
print(urllib.request.Request("http://example.org", b"x", {"X-A": "b"}).header_items(), mimetypes.guess_type("a.tar.gz"))
message = email.message.EmailMessage(); message["Subject"] = "grün"; message.set_content("hello\n"); print(message)
"#;
    Job::python(script).same().ok();
}

fn files() {
    let script = r#"
import os, shutil, tempfile, pathlib, glob, zipfile, tarfile, configparser, pickle, shelve, fileinput
base = pathlib.Path("work"); base.mkdir()
for i in range(200): (base / f"file-{i:03}.txt").write_text(f"line {i}\n" * i)
(base / "link").symlink_to("file-100.txt"); os.link(base / "file-050.txt", base / "hard")
print(len(glob.glob("work/*.txt")), (base / "link").read_text()[:9], (base / "hard").stat().st_nlink)
shutil.copytree(base, "copy", symlinks=True); shutil.move("copy/file-007.txt", "moved"); shutil.rmtree("copy/..//copy")
with zipfile.ZipFile("all.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for path in sorted(base.glob("*.txt")): z.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
with tarfile.open("all.tar", "w") as t:
    for path in sorted(base.iterdir()):
        info = t.gettarinfo(path); info.mtime = 0; info.uid = info.gid = 0; info.uname = info.gname = ""
        t.addfile(info, open(path, "rb") if info.isreg() else None)
with tarfile.open("all.tar") as t: t.extractall("out"); print(len(t.getnames()))
print(sum(path.stat().st_size for path in pathlib.Path("out").iterdir()))
pickle.dump({"a": [1, 2]}, open("pickle", "wb")); print(pickle.load(open("pickle", "rb")))
with open("big", "w+b") as f:
    f.seek(5 << 20); f.write(b"end"); f.seek(100); f.write(b"x" * 5000); f.truncate(6 << 20); print(f.seek(0, 2))
os.truncate("big", 1000); os.chmod("big", 0o640); os.rename("big", "work/big"); os.replace("moved", "work/file-000.txt")
with tempfile.TemporaryDirectory(dir=".") as d: open(d + "/x", "w").close()
print(sorted(os.listdir(".")), oct(os.stat("work/big").st_mode))
"#;
    Job::python(script).same_in(&Volume::new()).ok();
}

fn trees() {
    let script = "import os\n\
        for root, directories, names in os.walk('/usr/share/doc'):\n \
         directories.sort(); print(root, sorted(names), len(directories))\n \
         for name in names:\n  \
          s = os.lstat(os.path.join(root, name)); print(s.st_mode, s.st_size, s.st_nlink, s.st_mtime_ns)";
    Job::python(script)
        .limit(Duration::from_secs(120))
        .same()
        .ok();
}

fn uncaught_exception() {
    let outcome = Job::python("def f(): raise ValueError('wrong')\nf()").same();
    assert!(outcome.err().contains("ValueError: wrong"));
    assert_eq!(outcome.ended, Ended::Exit(1));
    Job::python("this is no Python")
        .same()
        .ended(Ended::Exit(1));
}

fn exit_codes() {
    for code in ["0", "3", "255", "256", "-1", "'message'", "None"] {
        Job::python(&format!("import sys; sys.exit({code})")).same();
    }
}

fn deep_recursion() {
    let script = "import sys\n\
        def f(n): return 0 if n == 0 else 1 + f(n - 1)\n\
        sys.setrecursionlimit(20000); print(f(15000))\n\
        try: f(30000)\n\
        except RecursionError as error: print(error)";
    Job::python(script).same().ok();
}

fn interpreter_options() {
    Job::new(["/usr/bin/python3", "-VV"]).same().ok();
    Job::new([
        "/usr/bin/python3",
        "-I",
        "-S",
        "-B",
        "-X",
        "utf8",
        "-c",
        "import sys; print(sys.flags, sys.path)",
    ])
    .same()
    .ok();
    Job::new(["/usr/bin/python3", "-m", "json.tool"])
        .input("{\"b\": [1, 2], \"a\": null}")
        .same()
        .ok();
    Job::new(["/usr/bin/python3", "-m", "timeit", "-h"])
        .same()
        .ok();
    Job::new(["/usr/bin/python3", "-m", "compileall", "-q", "."]).same_in(&Volume::filled(
        |directory| {
            std::fs::write(directory.join("fine.py"), "x = 1\n").expect("a file");
        },
    ));
}

fn standard_input() {
    Job::new(["/usr/bin/python3", "-"])
        .input("print(sum(map(int, '1 2 3'.split())))")
        .same()
        .ok();
    Job::new(["/usr/bin/python3"])
        .input("import sys\nprint(sys.stdin.read())\n# the rest")
        .same()
        .ok();
    let script = "import sys; print(sys.stdin.isatty(), sys.stdin.encoding, len(sys.stdin.read()))";
    Job::python(script).input("ä".repeat(10_000)).same().ok();
}

fn clocks() {
    let script = "import time\n\
        start = time.monotonic(), time.perf_counter(), time.time(), time.process_time()\n\
        time.sleep(0.2)\n\
        took = [end - begin for begin, end in zip(start, (time.monotonic(), time.perf_counter(), time.time()))]\n\
        print(all(0.2 <= t < 5 for t in took) or took, time.process_time() - start[3] < 0.2)\n\
        print(time.strftime('%Y', time.gmtime(0)), time.tzname, time.get_clock_info('monotonic').monotonic)";
    Job::python(script).same().ok();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock");
    let out = Job::python("import time; print(int(time.time()))")
        .guest()
        .ok()
        .out();
    let guest: u64 = out.trim().parse().expect("seconds");
    assert!(guest.abs_diff(now.as_secs()) < 30, "{guest}");
}
