import { setsCookies, type Call } from './call.ts';

/** An operation that OpenAI's packages for Node and Python have. */
export interface SdkCall {
  /** The same in both languages, such as `chat.completions.create`. */
  readonly method: string;
  /** What its arguments are: the fields of the body, the id in the path, a file and its purpose, or none. */
  readonly takes: 'body' | 'id' | 'file' | 'nothing';
  /** What is printed of the result: a property of it; null for a list, of which each id is printed. */
  readonly shown: Readonly<Record<'js' | 'python', string>> | null;
}

const both = (property: string) => ({ js: property, python: property });

const sdkCalls: Readonly<Record<string, SdkCall>> = {
  createChatCompletion: {
    method: 'chat.completions.create',
    takes: 'body',
    shown: both('.choices[0].message.content'),
  },
  createImage: { method: 'images.generate', takes: 'body', shown: both('.data[0].url') },
  createEmbedding: {
    method: 'embeddings.create',
    takes: 'body',
    shown: { js: '.data.length', python: '.data' },
  },
  createFile: { method: 'files.create', takes: 'file', shown: both('.id') },
  listFiles: { method: 'files.list', takes: 'nothing', shown: null },
  retrieveFile: { method: 'files.retrieve', takes: 'id', shown: both('.status') },
  deleteFile: { method: 'files.delete', takes: 'id', shown: both('.deleted') },
  listBatches: { method: 'batches.list', takes: 'nothing', shown: null },
  getBatch: { method: 'batches.retrieve', takes: 'id', shown: both('.status') },
  cancelBatch: { method: 'batches.cancel', takes: 'id', shown: both('.status') },
  listModels: { method: 'models.list', takes: 'nothing', shown: null },
  getModel: { method: 'models.retrieve', takes: 'id', shown: both('.id') },
};

/** Returns how OpenAI's packages make a call; null if they do not. */
export function findSdkCall({ operation, respondsAsync = false }: Call): SdkCall | null {
  if (respondsAsync || setsCookies(operation)) return null;
  return sdkCalls[operation.operationId] ?? null;
}

/** What is printed of each event of a stream. */
export const streamedValues: Readonly<Record<string, Readonly<Record<'js' | 'python', string>>>> = {
  'chat.completions.create': {
    js: "process.stdout.write(chunk.choices[0]?.delta.content ?? '');",
    python: 'if chunk.choices:\n        print(chunk.choices[0].delta.content or "", end="", flush=True)',
  },
  'images.generate': { js: 'console.log(chunk.type);', python: 'print(chunk.type)' },
};

/** The value of the only parameter in the path. */
export const findPathValue = ({ operation }: Call): string =>
  String((operation.parameters ?? []).find((one) => one.in === 'path')?.example ?? '');
