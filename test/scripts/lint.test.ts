import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import test from 'ava';

const program = resolve('node_modules/oxlint/bin/oxlint');

/** @returns the rules that report the code, in order of its lines */
async function lint(lines: readonly string[]): Promise<string[]> {
  const dir = await mkdtemp(join(tmpdir(), 'lint-'));
  try {
    await writeFile(join(dir, 'code.ts'), `${lines.join('\n')}\n`);
    const args = [program, '--config', resolve('.oxlintrc.json'), '--format=unix', join(dir, 'code.ts')];
    const output = await new Promise<string>((done) => {
      execFile(process.execPath, args, (_error, stdout) => done(stdout));
    });
    return Array.from(
      output.matchAll(/code\.ts:(\d+):.*\((no-[a-z-]+)\)\]/g),
      ([, line, rule]) => `${line} ${rule}`,
    );
  } finally {
    await rm(dir, { recursive: true });
  }
}

test('lint reports expressions whose time may grow faster than their input', async (t) => {
  const reported = await lint([
    // What `Prefer` was once read by.
    String.raw`export const preference = /(?:[^",;]|"(?:[^"\\]|\\.)*(?:"|$))+|[,;]/g;`,
    String.raw`export const slashes = /\/+$/;`,
    String.raw`export const twice = new RegExp('^(?:a+)+$');`,
    String.raw`export const alike = /^(?:a|a)*$/;`,
    String.raw`export const linear = /^[a-z]+(?:, [a-z]+)*$/;`,
  ]);
  t.deepEqual([...new Set(reported)].toSorted(), [
    '1 no-super-linear-move',
    '2 no-super-linear-move',
    '3 no-super-linear-backtracking',
    '4 no-dupe-disjunctions',
  ]);
});
