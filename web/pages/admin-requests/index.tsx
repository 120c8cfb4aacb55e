import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';

export default function AdminRequestsPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page">
      <div class="page-head">
        <h1>{t('title')}</h1>
      </div>
    </div>
  );
}
