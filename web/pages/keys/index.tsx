import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './keys.css';

export default function KeysPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page keys">
      <h1>{t('title')}</h1>
    </div>
  );
}
