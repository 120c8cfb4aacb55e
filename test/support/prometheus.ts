import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

interface Programs {
  readonly prometheus: string;
  readonly promtool: string;
}

// Plain JavaScript that runs before anything is compiled, so it is outside the compiled output.
const program = new URL('../../../scripts/bootstrap/prometheus-program.mjs', import.meta.url);
const { findPrometheus } = (await import(program.href)) as { findPrometheus: () => Programs | null };

/** The programs of Prometheus on this machine, or null. */
export const findPrograms = findPrometheus;

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  /** Unix seconds, and the value as text. */
  readonly value: readonly [number, string];
}

interface Rule {
  readonly name: string;
  readonly health: string;
  readonly state: string;
}

export interface Prometheus {
  /** @throws Error if Prometheus cannot evaluate the expression */
  query(expression: string): Promise<readonly Sample[]>;
  rules(): Promise<readonly Rule[]>;
  stop(): Promise<void>;
}

/** Runs Prometheus with `prometheus.yml` of a folder, where it also keeps its data. It listens on loopback. */
export async function startPrometheus(path: string, dir: string): Promise<Prometheus> {
  const child = spawn(
    path,
    [
      `--config.file=${join(dir, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      '--web.listen-address=127.0.0.1:0',
      '--log.format=json',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const exited = once(child, 'exit');
  let log = '';
  const lines = createInterface({ input: child.stderr });
  const url = await new Promise<string>((resolve, reject) => {
    let address: string | undefined;
    lines.on('line', (line) => {
      log += `${line}\n`;
      const entry = JSON.parse(line) as { msg?: string; address?: string };
      if (entry.msg === 'Listening on') address = entry.address;
      if (entry.msg?.startsWith('Server is ready') === true) resolve(`http://${address}`);
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`Prometheus did not start:\n${log}`)));
  });
  const read = async (resource: string): Promise<unknown> => {
    const response = await fetch(`${url}/api/v1/${resource}`);
    const { status, data, error } = (await response.json()) as {
      status: string;
      data: unknown;
      error?: string;
    };
    if (status !== 'success') throw new Error(`${resource}: ${error}`);
    return data;
  };
  return {
    async query(expression) {
      const data = await read(`query?query=${encodeURIComponent(expression)}`);
      return (data as { result: readonly Sample[] }).result;
    },
    async rules() {
      const { groups } = (await read('rules')) as { groups: readonly { rules: readonly Rule[] }[] };
      return groups.flatMap(({ rules }) => rules);
    },
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
