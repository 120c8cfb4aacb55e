import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './models.css';

export default function ModelsPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page models">
      <h1>{t('title')}</h1>
    </div>
  );
}
