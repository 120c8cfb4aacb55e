// Finds the lines of a text file that are closest in meaning to a question.
//   node dist/examples/semantic-search.js examples/household-hints.txt "How do I get wine out of a carpet?"
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type OpenAI from 'openai';
import {
  createGatewayClient,
  ExampleError,
  formatReceipt,
  readReceipt,
  runExample,
} from './gateway-client.ts';
import { ProgressBar } from './progress-bar.ts';

const usage = 'Usage: semantic-search <file> "question" [--top 5] [--model use-lite-en-512]';
/** Lines per call: few for a small file, many for a large one, because calls per minute are limited. */
const linesPerCall = { min: 16, max: 256 };
const targetCalls = 40;
/** Concurrent calls. The gateway merges simultaneous ones into shared vendor calls. */
const parallelCalls = 8;

interface EmbeddedTexts {
  readonly vectors: readonly (readonly number[])[];
  readonly costRub: number;
}

await runExample(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string', default: 'use-lite-en-512' },
      top: { type: 'string', default: '5' },
    },
  });
  const [file, question] = positionals;
  const top = Number(values.top);
  if (file === undefined || !question || positionals.length > 2 || !Number.isInteger(top) || top < 1) {
    throw new ExampleError(usage);
  }
  const text = await readFile(file, 'utf8');
  const lines = [...new Set(text.split(/\r?\n/).map((line) => line.trim()))].filter((line) => line !== '');
  if (lines.length === 0) throw new ExampleError(`${file} has no lines to search.`);

  const client = createGatewayClient(process.env);
  const embeddedQuestion = await embed(client, values.model, [question]);
  const embeddedLines = await embedInBatches(client, values.model, lines);
  const hits = embeddedLines.vectors
    .map((vector, i) => ({ line: lines[i]!, score: cosine(embeddedQuestion.vectors[0]!, vector) }))
    .sort((a, b) => b.score - a.score)
    .slice(0, top);
  for (const { line, score } of hits) process.stdout.write(`${score.toFixed(3)}  ${line}\n`);
  const receipt = formatReceipt({ cost_request: embeddedQuestion.costRub + embeddedLines.costRub });
  process.stderr.write(`${lines.length} lines and a question embedded for ${receipt}\n`);
});

async function embedInBatches(
  client: OpenAI,
  model: string,
  lines: readonly string[],
): Promise<EmbeddedTexts> {
  const { min, max } = linesPerCall;
  const batchSize = Math.min(max, Math.max(min, Math.ceil(lines.length / targetCalls)));
  const batches = Array.from({ length: Math.ceil(lines.length / batchSize) }, (_, i) =>
    lines.slice(i * batchSize, (i + 1) * batchSize),
  );
  // The client retries rate-limited calls after the delay that the gateway specifies. A large file needs more than the
  // default of two retries.
  const retryingClient = client.withOptions({ maxRetries: 5 });
  const bar = new ProgressBar(process.stderr, 'Embedding', lines.length);
  const results: EmbeddedTexts[] = [];
  let next = 0;
  // Each loop embeds the next batch when its previous one is done.
  const embedRemaining = async (): Promise<void> => {
    while (next < batches.length) {
      const index = next++;
      results[index] = await embed(retryingClient, model, batches[index]!);
      bar.advance(batches[index]!.length);
    }
  };
  try {
    await Promise.all(Array.from({ length: parallelCalls }, embedRemaining));
  } finally {
    bar.end();
  }
  return {
    vectors: results.flatMap((result) => result.vectors),
    costRub: results.reduce((sum, result) => sum + result.costRub, 0),
  };
}

async function embed(client: OpenAI, model: string, input: readonly string[]): Promise<EmbeddedTexts> {
  const response = await client.embeddings.create({ model, input: [...input] });
  return {
    vectors: response.data.map(({ embedding }) => embedding),
    costRub: readReceipt(response.usage).cost_request ?? 0,
  };
}

/** Cosine similarity: 1 for the same direction, 0 for nothing in common. */
function cosine(a: readonly number[], b: readonly number[]): number {
  let [dot, lengthA, lengthB] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    lengthA += a[i]! ** 2;
    lengthB += b[i]! ** 2;
  }
  return dot / (Math.sqrt(lengthA * lengthB) || 1);
}
