import type { Schema } from '../../admin/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import type en from './messages.en.ts';

export type AuditEvent = Schema<'AdminAuditEvent'>;

/** How a change ended. */
export function Outcome({ outcome }: { readonly outcome: AuditEvent['outcome'] }) {
  const t = useMessages<typeof en>();
  if (outcome === 'done') return <span class="soft">{t('outcome_done')}</span>;
  return <Badge tone={outcome === 'failed' ? 'bad' : 'warning'}>{t(`outcome_${outcome}`)}</Badge>;
}
