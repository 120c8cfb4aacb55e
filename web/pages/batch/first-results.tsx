import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { listImageSources, Thumbnails } from '../jobs/shared/images.tsx';
import { readResponse, readText, type Batch } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';
import { useFirstLines, type ResultLine } from './read-lines.ts';

const maxShown = 10;
const maxShownChars = 200;

/** The first results, to see whether they are as expected. All of them are in the file. */
export function FirstResults({ batch }: { readonly batch: Batch }) {
  const t = useMessages<typeof en>();
  const { completed } = batch.request_counts;
  const query = useFirstLines(batch, batch.partial_output_file_id, completed, maxShown);
  if (completed === 0 || batch.partial_output_file_id === null) return null;
  return (
    <Card title={t('firstResults')}>
      <QueryView query={query} loading={<Skeleton lines={4} height="2rem" />}>
        {(lines) => (
          <Table
            caption={t('firstResults')}
            rows={lines}
            keyOf={({ custom_id: id }) => id}
            columns={[
              {
                name: t('customId'),
                isHeader: true,
                render: ({ custom_id: id }) => <code class="batch-id">{id}</code>,
              },
              { name: t('result'), render: (line) => <Result line={line} /> },
            ]}
          />
        )}
      </QueryView>
    </Card>
  );
}

function Result({ line: { response } }: { readonly line: ResultLine }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  if (response === null || 'error' in response.body) return <>—</>;
  const known = readResponse(response.body);
  if (known.kind === 'images') return <Thumbnails sources={listImageSources(known.body.data)} size="small" />;
  if (known.kind === 'embeddings') {
    const first = known.body.data[0]?.embedding;
    return (
      <span class="soft">
        {Array.isArray(first) ? t('vector', { size: format.number(first.length) }) : t('packedVector')}
      </span>
    );
  }
  const [choice] = known.body.choices;
  const text = choice === undefined ? '' : readText(choice.message);
  return <p class="batch-text">{text.length > maxShownChars ? `${text.slice(0, maxShownChars)}…` : text}</p>;
}
