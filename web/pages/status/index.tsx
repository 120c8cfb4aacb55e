import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './status.css';

export default function StatusPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page status">
      <h1>{t('title')}</h1>
    </div>
  );
}
