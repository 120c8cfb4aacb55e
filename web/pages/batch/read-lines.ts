import { useQuery } from '@tanstack/preact-query';
import type { components } from '../../generated/api.d.ts';
import { readFile } from '../../lib/download.ts';
import { hasBatchEnded, type Batch } from '../jobs/shared/work.ts';

type ChatResponse = components['schemas']['ChatResponse'];
type ImageResponse = components['schemas']['ImageResponse'];
type EmbeddingResponse = components['schemas']['EmbeddingResponse'];

/** A line of a result file. Its response is that of a single request. */
export interface ResultLine {
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly body: ChatResponse | ImageResponse | EmbeddingResponse | ErrorBody;
  } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface ErrorBody {
  readonly error: { readonly code: string | null; readonly message: string };
}

/** How much of a result file is read: it may have 200 MB. */
const readBytes = 128 * 1024;

/** How many lines that failed are shown. There may be many thousands: the first ones stand for the others. */
export const maxShownErrors = 50;

/** Returns why a line failed. */
export function findReason({ response, error }: ResultLine): { code: string | null; message: string } {
  if (error !== null) return error;
  const body = response?.body;
  return body !== undefined && 'error' in body ? body.error : { code: null, message: '—' };
}

/** The first lines of a result file, read again while it is short and grows. */
export function useFirstLines(batch: Batch, fileId: string | null, lines: number, maxLines: number) {
  // Of a file that grows, only what is shown changes.
  const wanted = Math.min(lines, maxLines);
  return useQuery({
    queryKey: ['file-lines', fileId, wanted, hasBatchEnded(batch)],
    queryFn: async ({ signal }) => {
      const response = await readFile(`/v1/files/${fileId}/content`, {
        range: `bytes=0-${readBytes - 1}`,
        signal,
      });
      return parseLines(await response.text()).slice(0, maxLines);
    },
    enabled: fileId !== null && lines > 0,
    placeholderData: (previous) => previous,
    staleTime: Infinity,
  });
}

/** Parses the lines that are whole. */
function parseLines(text: string): ResultLine[] {
  return text
    .split('\n')
    .slice(0, -1)
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ResultLine);
}
