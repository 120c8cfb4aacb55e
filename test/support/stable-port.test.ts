import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'ava';
import { endWithParent } from './end-with-parent.ts';
import { reservePort } from './stable-port.ts';

test('while a process lives, no other process chooses its ports, even if nothing listens on them', async (t) => {
  const module = new URL('stable-port.js', import.meta.url).href;
  const code = `const { findStablePort } = await import('${module}');
    console.log(await findStablePort());
    process.stdin.resume();`;
  const command = [process.execPath, '--input-type=module', '--eval', code] as const;
  const [program, ...args] = endWithParent([...command]);
  const owner = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(owner, 'exit');
  const [line] = (await once(owner.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  t.true(port >= 12_000 && port < 22_000);
  t.false(await reservePort(port));
  owner.kill('SIGKILL');
  await exited;
  t.true(await reservePort(port));
  t.false(await reservePort(port), 'a port is reserved once, also within a process');
});
