import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { listImageSources, Thumbnails } from '../jobs/shared/images.tsx';
import { readResponse, readText, type Job, type KnownResponse } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';

/** The response of a job that has succeeded, or why it is not here. */
export function JobResult({ job, onReload }: { readonly job: Job; readonly onReload: () => unknown }) {
  const t = useMessages<typeof en>();
  const { response, response_error: error } = job;
  if (response === null)
    return (
      <Card title={t('result')}>
        <p class="soft">{error?.code === 'not_found' ? t('resultDeleted') : t('resultUnavailable')}</p>
        {error?.code !== 'not_found' && (
          <div>
            <Button icon="refresh" onClick={() => onReload()}>
              {t('readAgain')}
            </Button>
          </div>
        )}
      </Card>
    );
  return <Response known={readResponse(response)} />;
}

function Response({ known }: { readonly known: KnownResponse }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  if (known.kind === 'images')
    return (
      <Card title={t('result')}>
        <Thumbnails sources={listImageSources(known.body.data)} size="large" />
      </Card>
    );
  if (known.kind === 'embeddings') {
    const { data } = known.body;
    const first = data[0]?.embedding;
    return (
      <Card title={t('result')}>
        <p>
          {t('vectors', { count: data.length })}
          {Array.isArray(first) && `, ${t('dimensions', { count: first.length })}`}
        </p>
        {Array.isArray(first) && (
          <code class="job-vector soft">
            [
            {first
              .slice(0, 6)
              .map((value) => format.number(value, { maximumFractionDigits: 4 }))
              .join('; ')}
            ; …]
          </code>
        )}
      </Card>
    );
  }
  return (
    <>
      {known.body.choices.map(({ index, message }) => (
        <Card key={index} title={t('result')} actions={<CopyButton text={readText(message)} hasText />}>
          <div class="work-text" tabIndex={0} role="region" aria-label={t('result')}>
            {readText(message) || JSON.stringify(message.tool_calls ?? null, null, 2)}
          </div>
        </Card>
      ))}
    </>
  );
}
