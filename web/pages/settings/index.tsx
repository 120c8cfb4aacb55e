import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './settings.css';

export default function SettingsPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page settings">
      <h1>{t('title')}</h1>
    </div>
  );
}
