// Parses each file of the list on stdin, as a script or a module, and runs none.
const fs = require('fs'), vm = require('vm'), child = require('child_process');
const names = JSON.parse(fs.readFileSync(0, 'utf8'));
const params = ['exports', 'require', 'module', '__filename', '__dirname'];
const out = [];
const attempt = (parse) => { try { parse(); return null; } catch (e) { return e; } };
for (const path of names) {
  let code;
  try {
    if (!fs.lstatSync(path).isFile()) continue;
    code = fs.readFileSync(path, 'utf8').replace(/^\uFEFF/, '').replace(/^#!/, '//');
  } catch { continue; }
  const script = () => vm.compileFunction(code, params, { filename: path });
  const module = () => new vm.SourceTextModule(code, { identifier: path });
  const looksModule = /^\s*(import\s*[\w{*"']|export\s)/m.test(code);
  const order = path.endsWith('.mjs') ? [module] : path.endsWith('.cjs') ? [script] : looksModule ? [module, script] : [script, module];
  let first = null, good = false;
  for (const parse of order) {
    const e = attempt(parse);
    if (!e) { good = true; break; }
    first = first || e;
  }
  if (good || !(first instanceof SyntaxError)) continue;
  // The error of a module does not say where it is; node --check prints it.
  const lines = order[0] === script ? String(first.stack)
    : String(child.spawnSync(process.execPath, ['--check', '--input-type=module', '-'], { input: code, timeout: 10000 }).stderr);
  const at = /^(?:.*[\\/])?(?:\[stdin\]|[^\n]*?):(\d+)$/m.exec(lines);
  out.push({ path, line: at ? parseInt(at[1], 10) : 1, text: String(first.message) });
}
process.stdout.write(JSON.stringify(out));
