import { dist } from '../../../start/paths.ts';
import type { Programs } from '../programs.ts';
import { host } from './stores.ts';

/** The address that requests are sent to, and the keys that they use in turn. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly apiKeys: readonly string[];
}

/** A running vendor, on loopback. */
export interface Vendor {
  readonly pid: number;
  readonly url: string;
  /** For requests that do not pass through the gateway. */
  readonly target: Target;
}

/** `simulator` checks what it receives as a real vendor does; `cheap` takes almost no CPU. */
const programsOf = {
  simulator: [dist('scripts/vendor-simulator/main.js'), '--port', '0', '--json'],
  cheap: [dist('scripts/bench/harness/stack/cheap-vendor.js')],
} as const;

/**
 * Starts vendors, each in a separate process, and waits until they listen.
 * @param argumentsOf by the name of the vendor
 */
export async function startVendors<N extends string>(
  programs: Programs,
  kind: keyof typeof programsOf,
  argumentsOf: Readonly<Record<N, readonly string[]>>,
  node = process.execPath,
): Promise<Readonly<Record<N, Vendor>>> {
  const start = async ([name, own]: [string, readonly string[]]): Promise<[string, Vendor]> => {
    const args = [...programsOf[kind], ...own];
    const options = { name: `vendor-${name}`, file: node, args, env: process.env } as const;
    const program = programs.start({ ...options, kind: 'prints-address' });
    const { url } = await programs.readStartupLine(program);
    if (url === undefined) throw new Error(`${options.name} did not report its address`);
    const target = { host, port: Number(new URL(url).port), apiKeys: ['sk-bench'] };
    return [name, { pid: program.pid, url, target }];
  };
  const vendors = await Promise.all(Object.entries<readonly string[]>(argumentsOf).map(start));
  return Object.fromEntries(vendors) as Record<N, Vendor>;
}
