import { useMutation } from '@tanstack/preact-query';
import type { ApiAccount } from '../../lib/accounts.ts';
import { sendRequest } from '../../lib/api.ts';
import { ApiError } from '../../lib/api-error.ts';
import { saveBlob } from '../../lib/download.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorText } from '../../ui/states.tsx';
import type en from './messages.en.ts';
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
  const t = useMessages<typeof en>();
  const download = useMutation({
    mutationFn: async () => {
      const url = new URL(`/v1/web/api-accounts/${account.id}/request-logs`, location.origin);
      for (const [name, value] of Object.entries(selection)) url.searchParams.set(name, value);
      const response = await sendRequest(new Request(url, { headers: { accept: 'text/csv' } }));
      if (!response.ok) throw ApiError.ofResponse(response, await response.json().catch(() => null));
      saveBlob(await response.blob(), 'requests.csv');
    },
  });
  return (
    <div class="requests-csv">
      <Button icon="download" disabled={isEmpty} busy={download.isPending} onClick={() => download.mutate()}>
        {t('csv')}
      </Button>
      {download.error !== null && <ErrorText error={download.error} />}
    </div>
  );
}
