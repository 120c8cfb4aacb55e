import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** An expected failure. Its message is sufficient; no stack trace is needed. */
export class SetupError extends Error {}

/** Prints progress to stderr, because stdout is reserved for the command's output (admin … --json). */
export const say = (text) => process.stderr.write(`${text}\n`);

export const readText = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : '');

const children = new Set();
/** How long the output of a program that has exited may be held open by one that it started and left behind. */
const heldOutputMs = 10_000;

/** Passes a signal to the running programs. */
export function signalPrograms(signal) {
  for (const child of children) child.kill(signal);
}

/**
 * Runs a program until it exits. Kills it after `timeoutMs`, and once it has printed nothing for `silenceMs`. Collects
 * its output, and also passes it to `onOutput` as it arrives.
 */
export function run(
  file,
  args,
  { cwd = root, env = process.env, onOutput = () => {}, timeoutMs = 0, silenceMs = 0 } = {},
) {
  return new Promise((fulfil) => {
    const limits = { timeout: timeoutMs, killSignal: 'SIGKILL' };
    const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], ...limits });
    children.add(child);
    let output = '';
    const onSilence = () => {
      say(
        `${basename(args[0] ?? file)} has printed nothing for ${silenceMs / 60_000} minutes, and is killed.`,
      );
      child.kill('SIGKILL');
    };
    const silence = silenceMs > 0 ? setTimeout(onSilence, silenceMs) : null;
    const take = (stream) => (chunk) => {
      silence?.refresh();
      output += chunk;
      onOutput(chunk, stream);
    };
    child.stdout.setEncoding('utf8').on('data', take('stdout'));
    child.stderr.setEncoding('utf8').on('data', take('stderr'));
    child.on('error', (error) => {
      children.delete(child);
      fulfil({ code: 127, output: `${output}${error.message}\n` });
    });
    child.on('close', (code, signal) => {
      children.delete(child);
      fulfil({ code: code ?? 1, output: signal === null ? output : `${output}killed by ${signal}\n` });
    });
    child.on('exit', () => {
      clearTimeout(silence);
      const onHeldOutput = () => {
        say(`${basename(file)} has exited, but a program that it started still runs and holds its output.`);
        child.stdout.destroy();
        child.stderr.destroy();
      };
      const timer = setTimeout(onHeldOutput, heldOutputMs);
      child.once('close', () => clearTimeout(timer));
    });
  });
}

const seconds = (sinceMs) => `${((Date.now() - sinceMs) / 1000).toFixed(1)} s`;

/** Shows a line with the seconds that a long step takes. If there is no terminal, prints a line before and after it. */
export async function showProgress(label, work, { isLive = process.stderr.isTTY } = {}) {
  const startedMs = Date.now();
  const draw = () => process.stderr.write(`\r${label} … ${Math.floor((Date.now() - startedMs) / 1000)} s `);
  if (isLive) draw();
  else say(`${label} …`);
  const timer = isLive ? setInterval(draw, 1_000) : undefined;
  try {
    const result = await work();
    // The spaces overwrite the end of a longer line.
    say(isLive ? `\r${label}: ${seconds(startedMs)}     ` : `${label}: ${seconds(startedMs)}`);
    return result;
  } catch (error) {
    if (isLive) say('');
    throw error;
  } finally {
    clearInterval(timer);
  }
}

/** Runs one step. Prints its output only if it fails. @throws SetupError with `failure` */
export async function runStep(label, failure, file, args, options) {
  await showProgress(label, async () => {
    const { code, output } = await run(file, args, options);
    if (code !== 0) throw new SetupError(`${output.trimEnd()}\n\n${failure}`);
  });
}

/** Returns the path of the first of these names that is a program on the PATH, or null. */
export function findOnPath(names) {
  for (const name of names) {
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Not in this folder: try the next one.
      }
    }
  }
  return null;
}

/** Returns the JavaScript file of a package's command, so that npx is not needed. */
export function binOf(packageName) {
  const folder = join(root, 'node_modules', packageName);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return join(folder, typeof bin === 'string' ? bin : Object.values(bin)[0]);
}
