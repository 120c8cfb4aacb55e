import { useSession } from '../../lib/session.ts';
import { Overview } from './overview.tsx';
import { Welcome } from './welcome.tsx';
import './home.css';

export default function HomePage() {
  const { status } = useSession();
  return status === 'none' ? <Welcome /> : <Overview />;
}
