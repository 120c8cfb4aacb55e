import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './requests.css';

export default function RequestsPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page requests">
      <h1>{t('title')}</h1>
    </div>
  );
}
