import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Options } from './options.ts';
import { Output } from './output.ts';
import type { SuiteResult } from './suite.ts';
import type { Workshop } from './workshop.ts';

/**
 * Runs the selected suites in order, and writes the JSON file.
 * @returns whether none has faults
 */
export async function runSuites(options: Options, workshop: Workshop): Promise<boolean> {
  const { selections, settings, jsonPath } = options;
  const output = new Output(process.stderr);
  const cpus = availableParallelism();
  const node = process.versions.node;
  output.print(`${cpus} CPUs shared by all processes, Node ${node}`);
  if (settings.profileDir !== null) mkdirSync(settings.profileDir, { recursive: true });
  const results: SuiteResult[] = [];
  const jsonOf: Record<string, unknown> = {};
  for (const { suite, scenarios, counts, rounds } of selections) {
    jsonOf[suite.name] = suite.emptyJson;
    if (scenarios.length === 0) continue;
    const within = workshop.within.bind(workshop);
    const result = await suite.run({
      scenarios,
      settings,
      counts,
      rounds,
      earlier: results,
      output,
      within,
    });
    results.push(result);
    jsonOf[suite.name] = result.json;
  }
  if (jsonPath !== null) {
    const json = { at: new Date().toISOString(), node, cpus, ...jsonOf };
    writeFileSync(jsonPath, `${JSON.stringify(json, null, 2)}\n`);
  }
  return report(results);
}

function report(results: readonly SuiteResult[]): boolean {
  const failed = results.filter(({ faults }) => faults > 0);
  const errors = failed
    .filter(({ verdict }) => verdict === undefined)
    .reduce((sum, { faults }) => sum + faults, 0);
  if (errors > 0)
    console.error(`\n!!! ${errors} ERRORS: these numbers are meaningless until they are explained.`);
  for (const { verdict } of failed) if (verdict !== undefined) console.error(`\n!!! ${verdict}`);
  return failed.length === 0;
}
