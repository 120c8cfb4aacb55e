import { spawnSync } from 'node:child_process';
import test from 'ava';

const file = new URL('../../../scripts/start/json-output.js', import.meta.url).href;

test('each line of the JSON output is one object: those of parts unchanged, the others as messages', (t) => {
  const program = `
    import { JsonOutput } from '${file}';
    const output = new JsonOutput();
    output.print('model-gateway, with its data in .data\\n');
    output.print('');
    output.print('Ready in 2.0 s.\\n\\n  API key    mg-secret');
    output.printPart('redis', 'embedded', 76.4);
    output.muteRoutine();
    output.printLog('api', Buffer.from('{"level":"info","msg":"fir'));
    output.printLog('worker', Buffer.from('{"level":"warn","msg":"second"}\\ntext of a library\\n'));
    output.printLog('api', Buffer.from('st"}\\n'));
    output.printEvent('api', 'stopped', 'yellow');`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });
  const entries = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .map((entry) =>
      Object.fromEntries(Object.entries(entry).filter(([name]) => !['time', 'pid'].includes(name))),
    );
  t.deepEqual(entries, [
    { level: 'info', role: 'start', msg: 'model-gateway, with its data in .data' },
    { level: 'info', role: 'start', msg: 'Ready in 2.0 s.' },
    { level: 'info', role: 'start', part: 'redis', tookMs: 76, msg: 'embedded' },
    { level: 'warn', msg: 'second' },
    { level: 'info', role: 'start', part: 'worker', msg: 'text of a library' },
    { level: 'info', msg: 'first' },
    { level: 'warn', role: 'start', part: 'api', msg: 'stopped' },
  ]);
});
