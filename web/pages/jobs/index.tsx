import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './jobs.css';

export default function JobsPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page jobs">
      <h1>{t('title')}</h1>
    </div>
  );
}
