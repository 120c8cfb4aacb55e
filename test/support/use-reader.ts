import type { ExecutionContext } from 'ava';
import type { FileResult, FileRequest } from '../../shared/preparing/documents/file-content.ts';
import { DocumentReader } from '../../shared/preparing/documents/document-reader.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { toDataUri } from './make-pdf.ts';

export type ReadOptions = Partial<FileRequest> & {
  readonly accountId?: string;
  readonly mediaType?: string;
  readonly signal?: AbortSignal;
};

/** What the product logs with an error. */
export interface LoggedError {
  readonly err: Error;
}

/** @returns a function that reads a file as a request of account `a`, unless the options say otherwise */
export function useReader(t: ExecutionContext, timeoutMs?: number, logged: [LoggedError, string][] = []) {
  const log = { error: (fields: LoggedError, text: string) => logged.push([fields, text]) };
  // A slow machine must not end the wait for a slot.
  const waitMs = Math.max(60_000, timeoutMs ?? 0);
  const documents = new DocumentReader(log as unknown as Logger, timeoutMs, waitMs);
  t.teardown(() => documents.close());
  return async (bytes: Buffer, options: ReadOptions = {}): Promise<FileResult> => {
    const { accountId = 'a', mediaType, signal = new AbortController().signal, ...more } = options;
    const request: FileRequest = {
      filename: '',
      dataUri: toDataUri(bytes, mediaType),
      maxTokens: 1_000_000,
      tokensPerPage: 258,
      tokensPerImage: 1_445,
      tokenizer: 'o200k_base',
      ...more,
    };
    return await documents.read(accountId, request, signal);
  };
}
