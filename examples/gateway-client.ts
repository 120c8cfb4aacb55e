import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI, { APIConnectionError, APIError } from 'openai';

/** What went wrong and what to do, for whoever ran the example: one sentence, no stack. */
export class ExampleError extends Error {
  override readonly name = 'ExampleError';
}

/** The receipt that the gateway adds to every usage; OpenAI's own types do not know it. */
export interface Receipt {
  readonly cost_request?: number;
  readonly free_request?: boolean | null;
}

/** The official client, unmodified; all that makes it a client of the gateway is where it calls and with which key. */
export function createGatewayClient(env: NodeJS.ProcessEnv): OpenAI {
  const baseURL = findBaseUrl(env);
  return new OpenAI({ baseURL, apiKey: findApiKey(env, baseURL) });
}

function findBaseUrl(env: NodeJS.ProcessEnv): string {
  const given =
    env['MODEL_GATEWAY_URL'] || env['OPENAI_BASE_URL'] || `http://127.0.0.1:${env['PORT'] || 8080}`;
  if (!URL.canParse(given)) throw new ExampleError(`"${given}" is no address of a gateway.`);
  const url = given.replace(/\/+$/, '');
  return url.endsWith('/v1') ? url : `${url}/v1`;
}

/**
 * Keys of the gateway begin with `mg-`. Another one in OPENAI_API_KEY is a vendor's own, set for the catalog perhaps:
 * it is no use here, and no business of a server that is not the vendor's.
 */
function findApiKey(env: NodeJS.ProcessEnv, baseUrl: string): string {
  const given = env['OPENAI_API_KEY'] ?? '';
  if (given.startsWith('mg-')) return given;
  const isLocal = ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(baseUrl).hostname);
  const demo = isLocal ? readDemoKey(env['DATA_DIR'] || '.data') : null;
  if (demo !== null) return demo;
  const problem = given === '' ? 'OPENAI_API_KEY is not set' : 'OPENAI_API_KEY is not a key of the gateway';
  throw new ExampleError(
    `${problem}: set it to one that begins with mg-, such as "npm start" prints ` +
      'or "npm run -s admin -- account create --balance 100" makes.',
  );
}

/** The demo account's key, which `npm start` keeps; null where it has never run here. */
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

/** Runs an example to its end; what a user can do something about is said in one line. */
export async function runExample(run: () => Promise<void>): Promise<void> {
  // A reader that has seen enough, such as `head`, is no failure.
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
    return 'The gateway does not answer: is it running ("npm start"), and is MODEL_GATEWAY_URL right?';
  }
  if (error instanceof APIError) return `The gateway refused: ${error.message}`;
  if (error instanceof ExampleError) return error.message;
  // Wrong options, and files that are not there: their messages say all there is.
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof Error && code !== undefined) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

export const readReceipt = (usage: object | null | undefined): Receipt => usage ?? {};

/** A price as the gateway tells it, such as `0.00045 RUB`. */
export function formatReceipt({ cost_request: cost, free_request: free }: Receipt): string {
  return free ? 'a free request' : `${(cost ?? 0).toFixed(9).replace(/\.?0+$/, '')} RUB`;
}
