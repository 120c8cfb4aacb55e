import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI, { APIConnectionError, APIError } from 'openai';

/** An error that the user can fix. Its message is shown without a stack trace. */
export class ExampleError extends Error {
  override readonly name = 'ExampleError';
}

/** The receipt that the gateway adds to every `usage`. OpenAI's types do not include it. */
export interface Receipt {
  readonly cost_request?: number;
  readonly free_request?: boolean | null;
}

/** Creates the official client, unmodified. Only the base URL and the key are specific to the gateway. */
export function createGatewayClient(env: NodeJS.ProcessEnv): OpenAI {
  const baseURL = findBaseUrl(env);
  return new OpenAI({ baseURL, apiKey: findApiKey(env, baseURL) });
}

function findBaseUrl(env: NodeJS.ProcessEnv): string {
  const address =
    env['MODEL_GATEWAY_URL'] || env['OPENAI_BASE_URL'] || `http://127.0.0.1:${env['PORT'] || 8080}`;
  if (!URL.canParse(address)) throw new ExampleError(`"${address}" is no address of a gateway.`);
  const url = address.endsWith('/') ? address.slice(0, -1) : address;
  return url.endsWith('/v1') ? url : `${url}/v1`;
}

/**
 * The gateway's keys begin with `mg-`. Any other key in OPENAI_API_KEY belongs to a vendor, and may be set for the
 * catalog. It does not work here, and must be sent only to that vendor.
 */
function findApiKey(env: NodeJS.ProcessEnv, baseUrl: string): string {
  const apiKey = env['OPENAI_API_KEY'] ?? '';
  if (apiKey.startsWith('mg-')) return apiKey;
  const isLocal = ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(baseUrl).hostname);
  const demo = isLocal ? readDemoKey(env['DATA_DIR'] || '.data') : null;
  if (demo !== null) return demo;
  const problem = apiKey === '' ? 'OPENAI_API_KEY is not set' : 'OPENAI_API_KEY is not a key of the gateway';
  throw new ExampleError(
    `${problem}: set it to one that begins with mg-, such as the one that "npm start" prints ` +
      'or that "npm run -s admin -- account create --balance 100" creates.',
  );
}

/** Reads the demo account's key, which `npm start` saves. Null if it has never run here. */
function readDemoKey(dataDir: string): string | null {
  try {
    const secrets = JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8')) as {
      demoApiKey?: unknown;
    };
    return typeof secrets.demoApiKey === 'string' ? secrets.demoApiKey : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Runs an example. Prints errors that the user can fix in one line. */
export async function runExample(run: () => Promise<void>): Promise<void> {
  // A reader that closes the pipe early, such as `head`, is not an error.
  process.stdout.on('error', () => process.exit(0));
  try {
    await run();
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exitCode = 1;
  }
}

function describe(error: unknown): string {
  if (error instanceof APIConnectionError) {
    return 'The gateway does not answer. Is it running ("npm start"), and is MODEL_GATEWAY_URL correct?';
  }
  if (error instanceof APIError) return `The gateway refused: ${error.message}`;
  if (error instanceof ExampleError) return error.message;
  // For invalid options and missing files, the message is enough.
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof Error && code !== undefined) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

export const readReceipt = (usage: object | null | undefined): Receipt => usage ?? {};

/** Formats a price as the gateway does, such as `0.00045 RUB`. */
export function formatReceipt({ cost_request: cost, free_request: free }: Receipt): string {
  return free ? 'a free request' : `${trimZeros((cost ?? 0).toFixed(9))} RUB`;
}

function trimZeros(decimal: string): string {
  let end = decimal.length;
  while (decimal[end - 1] === '0') end -= 1;
  return decimal.slice(0, decimal[end - 1] === '.' ? end - 1 : end);
}
