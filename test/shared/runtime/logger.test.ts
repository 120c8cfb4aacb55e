import { spawnSync } from 'node:child_process';
import test from 'ava';

const logger = new URL('../../../shared/runtime/logger.js', import.meta.url).href;

test('a command that Redis refused is logged without what it was given', (t) => {
  const program = `
    import { createLogger } from '${logger}';
    const command = { name: 'evalsha', args: ['the-secret'] };
    createLogger('test', 'info').error({ err: Object.assign(new Error('WRONGTYPE'), { command }) }, 'failed');`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });
  t.regex(stdout, /WRONGTYPE.*evalsha/);
  t.notRegex(stdout, /the-secret/);
});
