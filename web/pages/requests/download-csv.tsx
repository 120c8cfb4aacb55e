import type { ApiAccount } from '../../lib/accounts.ts';
import { sendRequest } from '../../lib/api.ts';
import { ApiError } from '../../lib/api-error.ts';
import { CsvMenu } from './csv-menu.tsx';
import type { Selection } from './request-filter.ts';

/** Saves what is selected, on all pages, as a file for spreadsheets. */
export function DownloadCsv({
  account,
  selection,
  isEmpty,
}: {
  readonly account: ApiAccount;
  readonly selection: Selection;
  readonly isEmpty: boolean;
}) {
  const read = async (): Promise<Response> => {
    const url = new URL(`/v1/web/api-accounts/${account.id}/request-logs`, location.origin);
    for (const [name, value] of Object.entries(selection)) url.searchParams.set(name, value);
    const response = await sendRequest(new Request(url, { headers: { accept: 'text/csv' } }));
    if (!response.ok) throw ApiError.ofResponse(response, await response.json().catch(() => null));
    return response;
  };
  return <CsvMenu name="requests" read={read} isEmpty={isEmpty} />;
}
