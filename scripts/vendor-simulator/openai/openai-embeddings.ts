import { countWords } from '../count-words.ts';
import type { SimulatedResponse, SimulatedCall } from '../dialect.ts';
import { DEFAULT_DIMENSIONS, type VectorSource } from '../vectors.ts';

const MAX_INPUTS = 2048;

export function handleEmbeddings({ body, model, faults, settings }: SimulatedCall): SimulatedResponse {
  const inputs: unknown[] = Array.isArray(body['input']) ? body['input'] : [body['input']];
  const texts = inputs.filter((input) => typeof input === 'string');
  if (
    texts.length !== inputs.length ||
    texts.length === 0 ||
    texts.length > MAX_INPUTS ||
    texts.includes('')
  ) {
    return invalidRequest("'input' must contain 1 to 2048 non-empty texts");
  }
  const { poison } = faults;
  if (poison !== undefined && texts.some((text) => text.includes(poison))) {
    return invalidRequest("'input' contains a text that this model refuses");
  }
  const dimensions = typeof body['dimensions'] === 'number' ? body['dimensions'] : DEFAULT_DIMENSIONS;
  const isBase64 = body['encoding_format'] === 'base64' && faults.ignoresBase64 !== true;
  const { vectors } = settings;
  const items = vectors.isFast
    ? sliceFastItems(vectors, texts.length, dimensions, isBase64)
    : texts
        .map((text, index) =>
          faults.overflow !== undefined && text.includes(faults.overflow)
            ? renderOverflow(index, dimensions, isBase64)
            : renderItem(vectors, text, index, dimensions, isBase64),
        )
        .join(',');
  const { dearTokens = 1, specialTokens = 0 } = faults;
  const countTokens = (text: string): number =>
    countWords(text) * (dearTokens !== 1 && text.includes('dear') ? dearTokens : 1) + specialTokens;
  const tokens = texts.reduce((total, text) => total + countTokens(text), 0);
  const usage =
    faults.usage === 'missing' ? '' : `,"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}`;
  return {
    kind: 'whole',
    parts: ['{"object":"list","data":[', items, `],"model":${JSON.stringify(model)}${usage}}`],
  };
}

/** Concatenated by hand, because base64 needs no escaping and JSON.stringify would examine every character. */
function renderItem(
  vectors: VectorSource,
  text: string,
  index: number,
  dimensions: number,
  isBase64: boolean,
): string {
  const vector = isBase64
    ? `"${vectors.toBase64(text, dimensions)}"`
    : `[${vectors.toFloats(text, dimensions).join(',')}]`;
  return `{"object":"embedding","index":${index},"embedding":${vector}}`;
}

/** Renders the values that some half-precision servers send. */
function renderOverflow(index: number, dimensions: number, isBase64: boolean): string {
  const vector = isBase64
    ? `"${Buffer.alloc(dimensions * 4, 0xff).toString('base64')}"`
    : `[${Array.from({ length: dimensions }, () => '1e39').join(',')}]`;
  return `{"object":"embedding","index":${index},"embedding":${vector}}`;
}

interface FastItems {
  readonly bytes: Buffer;
  /** Where each item ends. */
  readonly ends: readonly number[];
}

const fastItems = new Map<string, FastItems>();

/**
 * In this mode all texts have the same vector, so the items of a small batch are a prefix of those of a large one. They
 * are built once per number of dimensions and then only sliced.
 */
function sliceFastItems(vectors: VectorSource, count: number, dimensions: number, isBase64: boolean): Buffer {
  const cacheKey = `${dimensions} ${isBase64}`;
  let known = fastItems.get(cacheKey);
  if (known === undefined || known.ends.length < count) {
    known = makeFastItems(vectors, Math.max(count, 2 * (known?.ends.length ?? 16)), dimensions, isBase64);
    fastItems.set(cacheKey, known);
  }
  return known.bytes.subarray(0, known.ends[count - 1]);
}

function makeFastItems(
  vectors: VectorSource,
  count: number,
  dimensions: number,
  isBase64: boolean,
): FastItems {
  const items = Array.from({ length: count }, (_, index) =>
    renderItem(vectors, '', index, dimensions, isBase64),
  );
  let end = -1;
  const ends = items.map((item) => (end += item.length + 1));
  return { bytes: Buffer.from(items.join(',')), ends };
}

function invalidRequest(message: string): SimulatedResponse {
  return {
    kind: 'error',
    error: { status: 400, type: 'invalid_request_error', code: null, message, param: 'input' },
  };
}
