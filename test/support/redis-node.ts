import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { endWithParent } from './end-with-parent.ts';
import { findStablePort } from './stable-port.ts';
import { testOnlyCertificate, testOnlyKeyThatIsNoSecret } from './test-only-certificate.ts';

export const clusterPassword = 'test-redis-password';

/** A node is considered dead after this time, and its replica is promoted about a second later. */
const nodeTimeoutMs = 2_000;

const logFile = 'redis.log';

export interface RedisNodeOptions {
  readonly dir: string;
  readonly tls: boolean;
}

/** One redis-server of a Cluster. If it is killed and restarted, it has the same port, node id and data. */
export class RedisNode {
  readonly port: number;
  readonly busPort: number;
  readonly url: string;
  /** Reconnects automatically. While the node is down, commands wait. */
  readonly client: Redis;
  readonly #options: RedisNodeOptions;
  #kill: () => Promise<void> = async () => undefined;
  #signal: (signal: NodeJS.Signals) => void = () => undefined;

  private constructor(port: number, busPort: number, options: RedisNodeOptions) {
    this.port = port;
    this.busPort = busPort;
    this.#options = options;
    this.url = `${options.tls ? 'rediss' : 'redis'}://:${clusterPassword}@127.0.0.1:${port}`;
    this.client = new Redis(this.url, {
      lazyConnect: true,
      retryStrategy: () => 50,
      maxRetriesPerRequest: null,
      ...(options.tls ? { tls: { ca: testOnlyCertificate } } : {}),
    });
    this.client.on('error', () => undefined);
  }

  static async start(options: RedisNodeOptions): Promise<RedisNode> {
    for (;;) {
      const node = new RedisNode(await findStablePort(), await findStablePort(), options);
      if (await node.start()) return node;
      node.client.disconnect();
    }
  }

  /** Restarts the server after a kill, and throws what it logged if it does not start. */
  async restart(): Promise<void> {
    if (await this.start()) return;
    const path = join(this.#options.dir, String(this.port), logFile);
    const log = await readFile(path, 'utf8').catch(() => 'it wrote no log');
    throw new Error(
      `redis-server on port ${this.port} did not start:\n${log.split('\n').slice(-20).join('\n')}`,
    );
  }

  /** Starts the server. @returns false if it ended at once, for example because a program uses one of its ports */
  async start(): Promise<boolean> {
    const dir = join(this.#options.dir, String(this.port));
    await mkdir(dir, { recursive: true });
    const args = await this.#writeArguments(dir);
    const [program, ...rest] = endWithParent(['redis-server', ...args]);
    const child = spawn(program, rest, { stdio: 'ignore' });
    const exited = once(child, 'exit');
    this.#signal = (signal) => child.kill(signal);
    this.#kill = async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await exited;
    };
    const info = await Promise.race([this.client.info('server'), exited.then(() => '')]);
    if (info.includes(`process_id:${child.pid}\r\n`)) return true;
    await this.#kill();
    return false;
  }

  /** Kills it, as in a crash. */
  async kill(): Promise<void> {
    await this.#kill();
  }

  signal(signal: NodeJS.Signals): void {
    this.#signal(signal);
  }

  async close(): Promise<void> {
    this.client.disconnect();
    await this.#kill();
  }

  async #writeArguments(dir: string): Promise<string[]> {
    const settings: Record<string, string> = {
      bind: '127.0.0.1',
      dir,
      logfile: logFile,
      save: '',
      // Acknowledged writes survive a kill. A master that restarted without data, before its replica was promoted,
      // would make the replica delete its data too.
      appendonly: 'yes',
      appendfsync: 'no',
      'repl-diskless-sync-delay': '0',
      requirepass: clusterPassword,
      masterauth: clusterPassword,
      'cluster-enabled': 'yes',
      'cluster-port': String(this.busPort),
      'cluster-node-timeout': String(nodeTimeoutMs),
      'cluster-allow-replica-migration': 'no',
      port: String(this.port),
    };
    if (this.#options.tls) {
      const files = { 'tls-cert-file': join(dir, 'cert.pem'), 'tls-key-file': join(dir, 'key.pem') };
      await writeFile(files['tls-cert-file'], testOnlyCertificate);
      await writeFile(files['tls-key-file'], testOnlyKeyThatIsNoSecret);
      Object.assign(settings, files, {
        port: '0',
        'tls-port': String(this.port),
        'tls-ca-cert-file': files['tls-cert-file'],
        'tls-auth-clients': 'no',
        'tls-cluster': 'yes',
        'tls-replication': 'yes',
      });
    }
    return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  }

  /** Whether the node is connected to all others, serves requests and, if it is a replica, has its master's data. */
  async knowsWholeCluster(nodes: number, replicas: number): Promise<boolean> {
    const [info, list, replication] = await Promise.all([
      this.client.cluster('INFO'),
      this.client.cluster('NODES') as Promise<string>,
      this.client.info('replication'),
    ]);
    const lines = list.trim().split('\n');
    return (
      info.includes('cluster_state:ok') &&
      lines.length === nodes &&
      lines.every((line) => line.includes(' connected')) &&
      lines.filter((line) => /\bslave\b/.test(line)).length === replicas &&
      !/\bfail|handshake|noaddr/.test(list) &&
      (replication.includes('role:master') || replication.includes('master_link_status:up'))
    );
  }
}
