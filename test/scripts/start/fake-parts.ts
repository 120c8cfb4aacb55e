import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { readFirstLine } from '../../../scripts/start/read-first-line.ts';
import type { Death, PartEvents, PartSpec } from '../../../scripts/start/supervise.ts';

export function makeFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'mg-start-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A part that runs this JavaScript; it is ready when it prints its first line. */
export function fakePart(folder: string, name: string, code: string, spec: Partial<PartSpec> = {}): PartSpec {
  const script = join(folder, `${name}.mjs`);
  writeFileSync(script, `import { appendFileSync } from 'node:fs';\n${code}`);
  return {
    name,
    launch: () => ({ file: process.execPath, args: [script] }),
    waitUntilReady: async (child, signal) => {
      await readFirstLine(child.stdout!, signal);
    },
    stopTimeoutMs: 5_000,
    firstStart: 'fail',
    ...spec,
  };
}

/** The code of a part that runs until it is asked to stop, and then appends its name to a file, the diary. */
export function politeCode(name: string, diary: string): string {
  return `process.on('SIGTERM', () => {
    setTimeout(() => { appendFileSync(${JSON.stringify(diary)}, '${name}\\n'); process.exit(0); }, 50);
  });
  setInterval(() => undefined, 1_000);
  console.log('ready');`;
}

/** Records all events of a part. */
export class EventLog implements PartEvents {
  readonly pids: number[] = [];
  readonly deaths: Death[] = [];
  readonly restarts: number[] = [];
  output = '';

  onOutput(chunk: Buffer): void {
    this.output += chunk.toString();
  }
  onSpawned(pid: number): void {
    this.pids.push(pid);
  }
  onRestarted(tookMs: number): void {
    this.restarts.push(tookMs);
  }
  onDied(death: Death): void {
    this.deaths.push(death);
  }
  onGone(): void {
    // Does nothing: the part's pid stays recorded, so that a test can check whether the process still runs.
  }
}

export function readLines(path: string): string[] {
  return readFileSync(path, 'utf8').trim().split('\n');
}
