import { execFileSync } from 'node:child_process';
import { countCallers, type LoadPlan, type LoadResult } from '../../harness/load/load-plan.ts';
import { runLoad } from '../../harness/load/run-load.ts';
import type { Programs } from '../../harness/programs.ts';
import { listErrors, sum } from '../../harness/statistics.ts';
import { alternate, type Suite, type SuiteContext } from '../../harness/suite.ts';
import { comparisons, type Comparison } from './comparisons.ts';
import { installPeer, peerName } from './install-peer.ts';
import { startPeerStack, type PeerStack, type Side, type SideName } from './peer-stack.ts';
import { formatComparison, formatPeersHead, peersLegend } from './report.ts';

export interface SideRun extends LoadResult {
  /** CPU milliseconds per response of the compared processes: without the load generator and the upstream. */
  readonly cpuMs: number;
  readonly faults: readonly string[];
}

export type PeerRound = Readonly<Partial<Record<SideName, SideRun>>>;

export interface PeerResult {
  readonly comparison: Comparison;
  readonly rounds: readonly PeerRound[];
}

type PeersContext = SuiteContext<Comparison, never>;

/** The gateway beside another gateway and beside the vendor itself, in turn. */
export const peersSuite: Suite<Comparison, never> = {
  name: 'peers',
  label: 'Side by side',
  scenarios: comparisons,
  runsOnlyByName: true,
  defaultRounds: 3,

  async run(context) {
    const { scenarios, settings, output, within } = context;
    output.show(`installing ${peerName} from npm`);
    const peer = await installPeer();
    const peerNode = execFileSync(peer.node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
    const ownNode = process.versions.node;
    const comparesNodes = peerNode !== ownNode;
    output.show('starting upstreams, the other gateway, and this one with its stores');
    const results = await within(async (programs) => {
      const stack = await startPeerStack(programs, settings, peer, comparesNodes);
      output.print(formatPeersHead(peerNode, comparesNodes ? ownNode : null));
      const done: PeerResult[] = [];
      for (const [i, comparison] of scenarios.entries()) {
        const step = `${i + 1}/${scenarios.length} ${comparison.name}`;
        const result = {
          comparison,
          rounds: await runRounds(context, { programs, stack, step }, comparison),
        };
        done.push(result);
        output.print(formatComparison(result, comparesNodes));
      }
      return done;
    });
    output.print(peersLegend);
    const runs = results.flatMap(({ rounds }) => rounds.flatMap((round) => Object.values(round)));
    return { json: results, faults: sum(runs.map(({ faults }) => faults.length)) };
  },
};

async function runRounds(
  { settings, rounds: count, output }: PeersContext,
  {
    programs,
    stack,
    step,
  }: { readonly programs: Programs; readonly stack: PeerStack; readonly step: string },
  comparison: Comparison,
): Promise<PeerRound[]> {
  const names = [
    comparison.baseline,
    'gateway',
    ...(stack.own === undefined ? [] : ['own' as const]),
  ] as const;
  const rounds: PeerRound[] = [];
  for (let round = 0; round < count; round++) {
    const runs: [SideName, SideRun][] = [];
    for (const name of alternate(names, round)) {
      output.show(`${step}, ${name}, round ${round + 1} of ${count}`);
      runs.push([name, await runSide(settings, programs, comparison, stack[name]!(comparison.upstream))]);
    }
    rounds.push(Object.fromEntries(runs));
  }
  return rounds;
}

async function runSide(
  settings: PeersContext['settings'],
  programs: Programs,
  comparison: Comparison,
  { target, headers = {}, pids, model, money }: Side,
): Promise<SideRun> {
  const { warmUpMs, measureMs } = settings;
  const plan: LoadPlan = {
    ...target,
    headers,
    path: `/v1${comparison.path}`,
    body: JSON.stringify({ model, ...comparison.body }),
    callers: countCallers(comparison, settings),
    span: { kind: 'time', warmUpMs, measureMs },
    expects: comparison.expects,
    pids,
  };
  const startedAt = new Date();
  const load = await runLoad(programs, plan);
  const checked = await money?.check(startedAt, load.allAnswers);
  const { load: _load, upstream: _upstream, ...compared } = load.cpu.processes;
  return {
    ...load,
    cpuMs: sum(Object.values(compared)) / Math.max(1, load.answers),
    faults: [...listErrors(load.errors), ...(checked?.faults ?? [])],
  };
}
