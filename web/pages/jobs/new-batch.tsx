import { useSearchParams } from 'wouter-preact';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { DropZone } from './drop-zone.tsx';
import { FileEstimate } from './file-estimate.tsx';
import type en from './messages.en.ts';
import type { BatchEndpoint } from './shared/work.ts';

/**
 * The way to a new batch: a file, what it will cost, and the start. The uploaded file is in the address, so that nothing
 * is lost by a reload or by signing in again.
 */
export function NewBatch() {
  const t = useMessages<typeof en>();
  const [search, setSearch] = useSearchParams();
  const file = search.get('file');
  const show = (id: string, endpoint: BatchEndpoint | null): void =>
    setSearch({ tab: 'batches', file: id, ...(endpoint === null ? {} : { endpoint }) }, { replace: true });
  return (
    <Card title={t('newBatch')}>
      {file === null ? (
        <DropZone onUploaded={show} />
      ) : (
        <FileEstimate
          key={file}
          fileId={file}
          onClose={() => setSearch({ tab: 'batches' }, { replace: true })}
        />
      )}
    </Card>
  );
}
