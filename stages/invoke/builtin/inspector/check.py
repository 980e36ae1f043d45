# Parses each file of the list on stdin and runs none of them.
import ast, json, os, stat, sys

names = json.load(sys.stdin)
needs = sys.argv[1] if len(sys.argv) > 1 else ""
out = []
if needs and tuple(map(int, needs.split("."))) > sys.version_info[:2]:
    out.append({"path": "", "line": 0, "text": "the project needs Python " + needs + " and this is %d.%d" % sys.version_info[:2]})
    names = []
for path in names:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            continue
        with open(path, "rb") as f:
            source = f.read()
    except OSError:
        continue
    first = source.split(b"\n", 1)[0]
    if first.startswith(b"#!") and b"python2" in first:
        continue
    try:
        ast.parse(source, path)
    except SyntaxError as e:
        out.append({"path": path, "line": e.lineno or 1, "text": str(e.msg)})
    except (ValueError, RecursionError, MemoryError) as e:
        out.append({"path": path, "line": 1, "text": type(e).__name__ + ": " + str(e)[:200]})
json.dump(out, sys.stdout)
