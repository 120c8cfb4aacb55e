import { useMutation } from '@tanstack/preact-query';
import { ApiError } from '../lib/api-error.ts';
import { saveBlob } from '../lib/download.ts';
import { Button } from './button.tsx';
import { ErrorText } from './states.tsx';

/** Saves what an operation gives as CSV, as a file for spreadsheets. */
export function CsvButton({
  label,
  path,
  query,
  fileName,
  isEmpty,
  send,
}: {
  readonly label: string;
  /** Of the operation, with `query`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string | number>>;
  readonly fileName: string;
  /** Whether there is nothing to save. */
  readonly isEmpty: boolean;
  /** Sends the request with the session. */
  readonly send: (request: Request) => Promise<Response>;
}) {
  const download = useMutation({
    mutationFn: async () => {
      const url = new URL(path, location.origin);
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
      const response = await send(new Request(url, { headers: { accept: 'text/csv' } }));
      if (!response.ok) throw ApiError.ofResponse(response, await response.json().catch(() => null));
      saveBlob(await response.blob(), fileName);
    },
  });
  return (
    <div>
      <Button icon="download" disabled={isEmpty} busy={download.isPending} onClick={() => download.mutate()}>
        {label}
      </Button>
      {download.error !== null && <ErrorText error={download.error} />}
    </div>
  );
}
