import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './job.css';

export default function JobPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page job">
      <h1>{t('title')}</h1>
    </div>
  );
}
