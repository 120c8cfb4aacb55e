import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './model.css';

export default function ModelPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page model">
      <h1>{t('title')}</h1>
    </div>
  );
}
