import { execFileSync } from 'node:child_process';
import type { LoadResult } from '../load-plan.ts';
import type { Options } from '../options.ts';
import type { Programs } from '../programs.ts';
import type { Progress } from '../progress.ts';
import { runLoad } from '../run-load.ts';
import type { Workshop } from '../workshop.ts';
import type { Comparison } from './comparisons.ts';
import { installPeer, peerName } from './install-peer.ts';
import { startPeerStack, type PeerStack, type Side } from './peer-stack.ts';
import { formatComparison, formatPeersHead, peersLegend } from './report.ts';

/** `own` is the gateway on the Node that runs this program, beside the one on the peer's Node. */
export type SideName = 'direct' | 'peer' | 'gateway' | 'own';

export interface SideRun extends LoadResult {
  readonly requestsPerSecond: number;
  /** CPU milliseconds per response of the compared processes: without the load generator and the upstream. */
  readonly cpuMs: number;
  readonly faults: readonly string[];
}

export type PeerRound = Readonly<Partial<Record<SideName, SideRun>>>;

export interface PeerResult {
  readonly comparison: Comparison;
  readonly rounds: readonly PeerRound[];
}

/** Measures the gateway beside another gateway and beside the vendor itself, in turn. Prints a row per comparison. */
export async function runPeers(
  options: Options,
  workshop: Workshop,
  progress: Progress,
): Promise<PeerResult[]> {
  if (options.comparisons.length === 0) return [];
  progress.show(`installing ${peerName} from npm`);
  const peer = await installPeer();
  const peerNode = execFileSync(peer.node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
  const ownNode = process.versions.node;
  const comparesNodes = peerNode !== ownNode;
  progress.show('starting upstreams, the other gateway, and this one with its stores');
  return await workshop.within(['api', 'worker'], async (programs, dir) => {
    const stack = await startPeerStack({ programs, dir, peer, comparesNodes, logLevel: options.logLevel });
    const results: PeerResult[] = [];
    try {
      progress.clear();
      console.log(formatPeersHead(peerNode, comparesNodes ? ownNode : null));
      for (const [i, comparison] of options.comparisons.entries()) {
        const step = `${i + 1}/${options.comparisons.length} ${comparison.name}`;
        const rounds = await runRounds(options, { programs, stack, progress, step }, comparison);
        const result = { comparison, rounds };
        results.push(result);
        progress.clear();
        console.log(formatComparison(result, comparesNodes));
      }
    } finally {
      progress.clear();
      await stack.close();
    }
    console.log(peersLegend);
    return results;
  });
}

export const countPeerFaults = (results: readonly PeerResult[]): number =>
  results
    .flatMap(({ rounds }) => rounds.flatMap((round) => Object.values(round)))
    .reduce((sum, { faults }) => sum + faults.length, 0);

interface Running {
  readonly programs: Programs;
  readonly stack: PeerStack;
  readonly progress: Progress;
  readonly step: string;
}

/** Reverses the order of the sides from round to round, so that none always runs on a warmer or busier machine. */
async function runRounds(
  options: Options,
  { programs, stack, progress, step }: Running,
  comparison: Comparison,
): Promise<PeerRound[]> {
  const { upstream, baseline } = comparison;
  const own = stack.gatewayOnOwnNode;
  const sides: readonly (readonly [SideName, Side])[] = [
    [baseline, stack[baseline](upstream)],
    ['gateway', stack.gateway(upstream)],
    ...(own === null ? [] : [['own', own(upstream)] as const]),
  ];
  const count = options.peerRounds;
  const rounds: PeerRound[] = [];
  for (let round = 0; round < count; round++) {
    const runs: [SideName, SideRun][] = [];
    for (const [name, side] of round % 2 === 0 ? sides : sides.toReversed()) {
      progress.show(`${step}, ${name}, round ${round + 1} of ${count}`);
      runs.push([name, await runSide(options, programs, comparison, side)]);
    }
    rounds.push(Object.fromEntries(runs));
  }
  return rounds;
}

async function runSide(
  { warmUpMs, measureMs, callers }: Options,
  programs: Programs,
  comparison: Comparison,
  { target, headers, pids, model, money }: Side,
): Promise<SideRun> {
  const startedAt = new Date();
  const load = await runLoad(programs, {
    ...target,
    headers,
    path: `/v1${comparison.path}`,
    body: JSON.stringify({ model, ...comparison.body }),
    callers: comparison.callers === 1 ? 1 : (callers ?? comparison.callers),
    background: 0,
    span: { kind: 'time', warmUpMs, measureMs },
    expects: comparison.expects,
    pids,
  });
  const checked = money === null ? null : await money.check(startedAt, load.allAnswers);
  const { load: _load, upstream: _upstream, ...compared } = load.cpu.processes;
  const cpuMs = Object.values(compared).reduce((sum, ms) => sum + ms, 0) / Math.max(1, load.answers);
  const errors = Object.entries(load.errors).map(([reason, times]) => `${times} × ${reason}`);
  return {
    ...load,
    requestsPerSecond: (load.answers * 1_000) / load.measuredMs,
    cpuMs,
    faults: [...errors, ...(checked?.faults ?? [])],
  };
}
