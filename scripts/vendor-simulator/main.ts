import { parseArgs } from 'node:util';

import { logUncaught } from '../../shared/platform/runtime/log-uncaught.ts';
import { type Faults, findUnknownFaultWords, parseFaultWords } from './faults.ts';
import { isServerName, serverNames, type ServerName } from './like/personalities.ts';
import { startVendorSimulator } from './simulator.ts';
import { renderCall, renderCatalog, renderFaultHelp, renderWelcome } from './welcome.ts';

logUncaught('vendor-simulator', { fd: 2 });

const DEFAULT_PORT = 9100;

const USAGE = `npm run simulate-vendor -- [options]

  --port 9100            port on 127.0.0.1 to listen on
  --faults slow-300+drip-20   faults of every call (words below)
  --per-call-ms 0        service time of every call
  --per-input-ms 0       service time added for each embedding input
  --max-concurrency N    maximum concurrent calls; further calls wait in a queue
  --overflow wait        or reject: refuse further calls with 429
  --vectors by-text      or fast: the same vector for all texts
  --reply-words N        length of every chat response; by default, it repeats the user's last message
  --prompt-tokens words  or received: count everything received, with o200k_base
  --like SERVER          be this server with OpenAI's API: ${serverNames.join(', ')}
  --json                 print the address as one line of JSON instead of a welcome, and do not print calls
  --catalog              print a catalog.yaml for this port, and exit
  --help
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: String(DEFAULT_PORT) },
      faults: { type: 'string', default: '' },
      'per-call-ms': { type: 'string', default: '0' },
      'per-input-ms': { type: 'string', default: '0' },
      'max-concurrency': { type: 'string', default: 'Infinity' },
      overflow: { type: 'string', default: 'wait' },
      vectors: { type: 'string', default: 'by-text' },
      'reply-words': { type: 'string' },
      'prompt-tokens': { type: 'string', default: 'words' },
      like: { type: 'string' },
      json: { type: 'boolean', default: false },
      catalog: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(`${USAGE}\n${renderFaultHelp()}`);
    return;
  }
  const port = readNumber('port', values.port);
  if (values.catalog) {
    process.stdout.write(renderCatalog(`http://127.0.0.1:${port}`));
    return;
  }
  const simulator = await startVendorSimulator({
    port,
    faults: readFaults(values.faults),
    cost: {
      perCallMs: readNumber('per-call-ms', values['per-call-ms']),
      perInputMs: readNumber('per-input-ms', values['per-input-ms']),
      maxConcurrency: readNumber('max-concurrency', values['max-concurrency']),
      overflow: values.overflow === 'reject' ? 'reject' : 'wait',
    },
    vectors: values.vectors === 'fast' ? 'fast' : 'by-text',
    replyWords: values['reply-words'] === undefined ? null : readNumber('reply-words', values['reply-words']),
    promptTokens: values['prompt-tokens'] === 'received' ? 'received' : 'words',
    ...(values.like === undefined ? {} : { like: readServer(values.like) }),
    logCapacity: 0,
    ...(values.json ? {} : { onCallOver: (call) => console.log(renderCall(call)) }),
  });
  if (values.json) {
    console.log(JSON.stringify({ url: simulator.url }));
  } else {
    console.log(renderWelcome(simulator.url, values.like ?? null));
  }

  const stop = async (): Promise<void> => {
    await simulator.close();
    const { total, aborted, byStatus } = simulator.requests.counters;
    console.log(
      `Stopped after ${total} requests: ${JSON.stringify(byStatus)}, ${aborted} aborted by their callers.`,
    );
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stop().catch(fail);
    });
  }
}

function readFaults(text: string): Faults {
  const [word] = findUnknownFaultWords(text);
  if (word !== undefined) {
    throw new TypeError(
      `--faults: "${word}" is not a fault, or its number is missing; --help lists all faults`,
    );
  }
  return parseFaultWords(text);
}

function readServer(name: string): ServerName {
  if (isServerName(name)) return name;
  throw new TypeError(`--like must be one of ${serverNames.join(', ')}, not "${name}"`);
}

function readNumber(name: string, text: string): number {
  const number = Number(text);
  if (text.trim() === '' || Number.isNaN(number) || number < 0) {
    throw new TypeError(`--${name} must be a non-negative number, not "${text}"`);
  }
  return number;
}

function fail(error: unknown): void {
  const { code, port } = error as { code?: string; port?: number };
  const isTaken = code === 'EADDRINUSE' && port !== undefined;
  if (isTaken) console.error(`Port ${port} is in use by another program: specify a free one with --port.`);
  else console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

main().catch(fail);
