import type { Writable } from 'node:stream';
import { FoundProblems, readReason, UsageError, type AdminVerb, type StorelessVerb } from './command.ts';
import { printResult } from './print-result.ts';
import { readArguments, type CommandArguments } from './read-arguments.ts';
import { toPrintable } from '../../shared/platform/runtime/to-printable.ts';
import { openTrail } from './open-trail.ts';
import { describeFailure, withStores } from './with-stores.ts';

type Verbs = Record<string, AdminVerb | StorelessVerb>;

/** Imported on demand, because most commands need neither BullMQ nor the catalog reader, which are slow to load. */
const resources: Record<string, () => Promise<Verbs>> = {
  account: async () => (await import('./account.ts')).accountVerbs,
  audit: async () => (await import('./audit.ts')).auditVerbs,
  batch: async () => (await import('./batch.ts')).batchVerbs,
  code: async () => (await import('./code.ts')).codeVerbs,
  doctor: async () => (await import('./doctor.ts')).doctorVerbs,
  find: async () => (await import('./find.ts')).findVerbs,
  job: async () => (await import('./job.ts')).jobVerbs,
  ledger: async () => (await import('./ledger.ts')).ledgerVerbs,
  model: async () => (await import('./model.ts')).modelVerbs,
  queue: async () => (await import('./queue.ts')).queueVerbs,
  request: async () => (await import('./request.ts')).requestVerbs,
  spend: async () => (await import('./spend.ts')).spendVerbs,
  token: async () => (await import('./token.ts')).tokenVerbs,
  upstream: async () => (await import('./upstream.ts')).upstreamVerbs,
  user: async () => (await import('./user.ts')).userVerbs,
};

/** Returns the usage of the verb on the command line, or of its resource, or of all commands. */
async function describeUsage([resource = '', name = '']: readonly string[]): Promise<string> {
  const call = 'Usage: npm run -s admin -- <resource> <verb> … [--json]';
  const isKnown = Object.hasOwn(resources, resource);
  if (!isKnown && resource !== '' && !resource.startsWith('-'))
    return `${call}\n<resource> is one of: ${Object.keys(resources).join(', ')}.`;
  const shown = isKnown ? { [resource]: resources[resource]! } : resources;
  const lines: string[] = [];
  for (const [shownResource, load] of Object.entries(shown))
    lines.push(...describeVerbs(shownResource, await load(), name));
  for (const [placeholder, meaning] of Object.entries(placeholders))
    if (lines.some((line) => line.includes(placeholder))) lines.push(`${placeholder} is ${meaning}.`);
  return [call, ...lines].join('\n');
}

const placeholders = {
  '<account>': 'an account id, an API key, or the number that the account area shows',
  '<batch>': 'the id of a batch, which begins with batch_',
  '<job>': 'the id of a job, which is the x-request-id of the request that created it',
  '<queue>': 'chat, image or embedding',
  '<request>': 'the x-request-id of a response',
  '<upstream>': 'the name of an upstream of the catalog',
  '<user>': 'the id or the email address of a user of the account area',
};

/** Two lines per verb. If one of the verbs is specified, only that one. */
function describeVerbs(resource: string, verbs: Verbs, only: string): string[] {
  const shown = Object.hasOwn(verbs, only) ? { [only]: verbs[only]! } : verbs;
  return Object.entries(shown).flatMap(([verb, { usage, help, isChange = false }]) => {
    const reason = isChange && !usage.includes('--reason') ? '[--reason "why"]' : '';
    return [`  ${[resource, verb, usage, reason].filter((word) => word !== '').join(' ')}`, `      ${help}`];
  });
}

/** Width if stdout is not a terminal. */
const defaultColumns = 100;

interface CommandLine extends CommandArguments {
  readonly verb: AdminVerb | StorelessVerb;
}

async function readCommandLine(args: string[]): Promise<CommandLine> {
  const [resource = '', ...others] = args;
  const verbs = Object.hasOwn(resources, resource) ? await resources[resource]!() : {};
  // The only verb of some resources has no name.
  const [name = '', ...verbArguments] = Object.hasOwn(verbs, '') ? ['', ...others] : others;
  const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (verb === undefined)
    throw new UsageError(
      resource === ''
        ? 'Specify a resource and a verb.'
        : (name === '' || name.startsWith('-')) && Object.keys(verbs).length > 0
          ? `Specify what to do with "${resource}".`
          : `There is no "${`${resource} ${name}`.trim()}".`,
    );
  return { verb, ...readArguments(verbArguments, `${resource} ${name}`.trimEnd(), verb) };
}

/** The streams that a command prints to. */
export interface AdminOutput {
  readonly stdout: Writable & { readonly columns?: number };
  readonly stderr: Writable;
}

async function run(args: string[], env: NodeJS.ProcessEnv, { stdout, stderr }: AdminOutput): Promise<number> {
  if (args.includes('--help')) {
    stdout.write(`${await describeUsage(args)}\n`);
    return 0;
  }
  const { verb, positionals, options, flags, json } = await readCommandLine(args);
  const reason = verb.isChange === true ? readReason(options) : null;
  const warnings: string[] = [];
  const warn = (text: string): void => {
    warnings.push(`Warning: ${toPrintable(text)}\n`);
  };
  let exitCode = 0;
  const print = async (running: Promise<unknown>): Promise<void> => {
    const result = await running.catch((error: unknown) => {
      if (!(error instanceof FoundProblems)) throw error;
      exitCode = 1;
      return error.result;
    });
    await printResult(result, stdout, {
      json,
      width: stdout.columns ?? defaultColumns,
      columns: verb.columns,
    });
  };
  await (
    'runWithoutStores' in verb
      ? print(verb.runWithoutStores({ env, flags, options, warn }))
      : withStores(env, (stores) =>
          print(
            verb.run({
              ...stores,
              trail: openTrail(stores, warn, reason),
              positionals,
              options,
              flags,
              warn,
            }),
          ),
        )
  ).finally(() => {
    // Below the result, where they are read.
    for (const text of warnings) stderr.write(text);
  });
  return exitCode;
}

/** Runs one command line. Never rejects. @returns the exit code: 2 for a wrong command line, 1 for any other failure */
export async function runCommandLine(
  args: string[],
  env: NodeJS.ProcessEnv,
  output: AdminOutput,
): Promise<number> {
  try {
    return await run(args, env, output);
  } catch (error) {
    const usage = error instanceof UsageError;
    const failure = describeFailure(error).split('\n').map(toPrintable).join('\n');
    output.stderr.write(`${failure}\n${usage ? `${await describeUsage(args)}\n` : ''}`);
    return usage ? 2 : 1;
  }
}
