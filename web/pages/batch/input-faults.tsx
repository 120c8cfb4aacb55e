import { SiteLink } from '../../frame/site-link.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Notice } from '../../ui/notice.tsx';
import { FaultLines } from '../jobs/shared/fault-lines.tsx';
import type { Batch } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';

/** Why the batch has failed: what is wrong with its file, line by line. */
export function InputFaults({ faults }: { readonly faults: NonNullable<Batch['errors']>['data'] }) {
  const t = useMessages<typeof en>();
  return (
    <section class="card">
      <Notice tone="bad" title={t('faultsTitle')}>
        <p class="small">{t('faultsText')}</p>
      </Notice>
      <FaultLines faults={faults} />
      <div>
        <SiteLink href="/jobs?tab=batches" class="button primary">
          {t('uploadAgain')}
        </SiteLink>
      </div>
    </section>
  );
}
