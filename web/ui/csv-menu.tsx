import { useMutation } from '@tanstack/preact-query';
import { saveBlob } from '../lib/download.ts';
import { useFormat } from '../lib/format.ts';
import { useCommon, useLanguage } from '../lib/language.tsx';
import { Icon } from './icon.tsx';
import { Menu } from './menu.tsx';
import { ErrorText } from './states.tsx';

/** Saves CSV as it is, or as Excel reads it in the page's language. */
export function CsvMenu({
  name,
  read,
  isEmpty = false,
}: {
  /** Of the file, without its ending. */
  readonly name: string;
  /** Returns the CSV (RFC 4180). */
  readonly read: () => Promise<Response>;
  readonly isEmpty?: boolean;
}) {
  const common = useCommon();
  const language = useLanguage();
  const { timeZone } = useFormat();
  const save = useMutation({
    mutationFn: async (isForExcel: boolean) => {
      const response = await read();
      if (!isForExcel || response.body === null) return saveBlob(await response.blob(), `${name}.csv`);
      const { toExcelCsv } = await import('../../api/pages/excel-csv.ts');
      const converted = new Response(toExcelCsv(response.body, { language, timeZone }), {
        headers: { 'content-type': 'text/csv; charset=utf-8' },
      });
      saveBlob(await converted.blob(), `${name}-excel.csv`);
    },
  });
  return (
    <div>
      <Menu
        label={common('csv')}
        hasText
        isDisabled={isEmpty || save.isPending}
        buttonClass="button secondary medium"
        button={
          <>
            <Icon name="download" />
            {common('csv')}
            {save.isPending ? <span class="spinner" aria-hidden="true" /> : <Icon name="down" size={14} />}
          </>
        }
        groups={[
          {
            items: [
              { value: 'csv', label: common('csvPlain'), onSelect: () => save.mutate(false) },
              { value: 'excel', label: common('csvExcel'), onSelect: () => save.mutate(true) },
            ],
          },
        ]}
      />
      {save.error !== null && <ErrorText error={save.error} />}
    </div>
  );
}
